import { act } from '../../api/client.ts'
import type { GetData } from '../../api/client.ts'
import { useData, useRoute } from '../../api/use-data.ts'
import { Confirm } from '../../components/dialog-form.tsx'
import { ErrorOf, Facts, notify, Panel, Reading } from '../../components/page.tsx'
import { bytes, count, plural, span, TYPE_NAMES } from '../../components/values.tsx'
import type { ChannelType } from '../../components/values.tsx'
import { go, href } from '../../router/location.ts'

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
  const { data, error } = useRoute('/api/settings', {}, 30_000)
  const settings = new Map(data?.items.map((setting) => [setting.key, setting]))
  return (
    <Panel title="Limits" note="of each channel of this type">
      <ErrorOf error={error} />
      <Facts
        of={Object.fromEntries(
          limitsOf(type).map(({ key, name, format }) => {
            const setting = settings.get(key)
            return [name, setting && <Value setting={setting} format={format} />]
          }),
        )}
      />
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

interface PurgeQueueProps {
  readonly channel: string
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Asks before a purge, with the counts of a dry run. */
export function PurgeQueue({ channel, onClose, onDone }: PurgeQueueProps) {
  const counts = useData(`purge ${channel}`, (signal) => act('purge_queue', { channel, dry_run: true }, signal), 2_000)
  return (
    <Confirm
      title="Purge queue"
      name={channel}
      action="Purge"
      onClose={onClose}
      run={async () => {
        const { purged } = await act('purge_queue', { channel })
        notify(`${plural(purged, 'message')} removed.`)
        onDone()
      }}
    >
      <Reading of={counts} />
      {counts.data && (
        <p>
          This removes <strong>{plural(counts.data.would_purge ?? 0, 'message')}</strong>, including delayed ones, for
          good. {plural(counts.data.in_flight ?? 0, 'leased message')} {counts.data.in_flight === 1 ? 'stays' : 'stay'}.
        </p>
      )}
    </Confirm>
  )
}

interface DeleteChannelProps {
  readonly type: ChannelType
  readonly channel: string
  readonly onClose: () => void
}

/** Asks before a channel is deleted, with the counts of a dry run. */
export function DeleteChannel({ type, channel, onClose }: DeleteChannelProps) {
  const counts = useData(
    `delete ${type} ${channel}`,
    (signal) => act('delete_channel', { type, channel, dry_run: true }, signal),
    2_000,
  )
  const content = counts.data?.would_delete
  return (
    <Confirm
      title="Delete channel"
      name={channel}
      action="Delete"
      onClose={onClose}
      run={async () => {
        await act('delete_channel', { type, channel })
        notify(`${TYPE_NAMES[type]} ${channel} deleted.`)
        go(['channels'])
      }}
    >
      <Reading of={counts} />
      {content && (
        <p>
          This deletes <strong>{plural(content.messages, 'message')}</strong> ({bytes(content.bytes)}) for good,{' '}
          {content.in_flight} of them leased. {plural(content.subscribers, 'subscriber')}{' '}
          {content.subscribers === 1 ? 'is' : 'are'} connected.
        </p>
      )}
    </Confirm>
  )
}
