import type { GetData } from '../../api/client.ts'
import { bytes, count } from '../../components/format.ts'
import { Ago } from '../../components/time.tsx'

type Listed = GetData<'/api/channels'>['items'][number]

/** The numbers of one channel. Those that its type does not have are left out. */
export function ChannelFigures({ channel }: { readonly channel: Listed }) {
  const figures: readonly (readonly [string, number | null])[] = [
    [channel.type === 'events_store' ? 'Events' : 'Waiting', channel.depth],
    ['In flight', channel.in_flight],
    ['Delayed', channel.delayed],
    ['Dead-lettered', channel.dead_lettered],
    ['Messages in', channel.messages_in],
    ['Messages out', channel.messages_out],
    ['Errors', channel.errors],
    ['Subscribers', channel.subscribers],
  ]
  return (
    <dl class="figures">
      {figures.map(
        ([title, value]) =>
          value !== null && (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{count(value)}</dd>
            </div>
          ),
      )}
      {channel.bytes !== null && (
        <div>
          <dt>Size</dt>
          <dd>{bytes(channel.bytes)}</dd>
        </div>
      )}
      <div>
        <dt>Last activity</dt>
        <dd>
          <Ago value={channel.last_activity} />
        </dd>
      </div>
    </dl>
  )
}
