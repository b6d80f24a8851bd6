import type { GetData } from '../../api/client.ts'
import { get } from '../../api/client.ts'
import { useData } from '../../api/use-data.ts'
import type { ChannelType } from '../../components/channel-link.tsx'
import { Fact } from '../../components/fact.tsx'
import { ErrorOf } from '../../components/feedback.tsx'
import { bytes, count, plural, span } from '../../components/format.ts'
import { Panel } from '../../components/page.tsx'
import { href } from '../../router/location.ts'

/** A setting that limits the channels of a type. */
interface Limit {
  readonly key: string
  readonly name: string
  readonly format: (value: number) => string
}

const BODY: Limit = { key: 'maxBodyBytes', name: 'Request with a message', format: bytes }

const STORED: Readonly<Partial<Record<ChannelType, readonly Limit[]>>> = {
  queues: [
    { key: 'queue.maxMessages', name: 'Messages', format: count },
    { key: 'queue.maxBytes', name: 'Size', format: bytes },
  ],
  events_store: [
    { key: 'store.maxAgeSeconds', name: 'Age of an event', format: (seconds) => span(seconds * 1_000) },
    { key: 'store.maxBytes', name: 'Size', format: bytes },
  ],
}

const WAITING: Limit = {
  key: 'limits.caller.waitingRequests',
  name: 'Waiting requests of a caller',
  format: (requests) => plural(requests, 'request'),
}

/** The settings that limit a channel. They are the same for all channels of its type. */
export function Limits({ type }: { readonly type: ChannelType }) {
  const { data, error } = useData('settings', (signal) => get('/api/settings', {}, signal), 30_000)
  const settings = new Map(data?.items.map((setting) => [setting.key, setting]))
  return (
    <Panel title="Limits" note="of each channel of this type">
      <ErrorOf error={error} />
      <dl class="facts">
        {limitsOf(type).map(({ key, name, format }) => {
          const setting = settings.get(key)
          return (
            setting && (
              <Fact key={key} name={name}>
                <Value setting={setting} format={format} />
              </Fact>
            )
          )
        })}
      </dl>
    </Panel>
  )
}

function limitsOf(type: ChannelType): readonly Limit[] {
  if (type === 'commands' || type === 'queries') return [WAITING, BODY]
  return [...(STORED[type] ?? []), BODY]
}

interface ValueProps {
  readonly setting: GetData<'/api/settings'>['items'][number]
  readonly format: Limit['format']
}

function Value({ setting: { env, value }, format }: ValueProps) {
  return (
    <>
      {typeof value === 'number' && value > 0 ? `at most ${format(value)}` : 'no limit'}{' '}
      <a href={href(['settings'], { search: env.toLowerCase() })}>
        <code>{env}</code>
      </a>
    </>
  )
}
