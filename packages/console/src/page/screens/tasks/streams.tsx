import { useState } from 'preact/hooks'

import { act } from '../../api/client.ts'
import type { GetData } from '../../api/client.ts'
import { useRoute } from '../../api/use-data.ts'
import { Confirm } from '../../components/dialog-form.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Empty, Facts, notify, Panel, Reading } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { Timeline } from '../../components/timeline.tsx'
import { count, Time, UserText } from '../../components/values.tsx'
import { go, href } from '../../router/location.ts'
import { useMay } from '../../session/operator.ts'

interface StreamsProps {
  readonly query: Readonly<Record<string, string>>
  /** The id of the stream that is shown. */
  readonly selected: string | undefined
}

/** The streams of agents that are open to clients of this node. */
export function Streams({ query, selected }: StreamsProps) {
  const [ending, setEnding] = useState<ListedStream>()
  const mayEnd = useMay('ReadWrite')
  const { data, error, loading, refresh } = useRoute('/api/streams', { limit: 1_000 }, 2_000)
  return (
    <Panel title="Streams of agents" note={data && `${count(data.items.length)}, of this node`}>
      <Reading of={{ error, loading }} />
      {data && (
        <Table
          label="Streams of agents"
          empty="No stream of an agent is open to a client of this node."
          rows={data.items}
          keyOf={({ id }) => id}
          onOpen={({ id }) => go(['tasks', 'streams', id], query)}
          isSelected={({ id }) => id === selected}
          columns={[
            {
              title: 'Agent',
              cell: ({ agent_id }) => <a href={href(['agents', agent_id])}>{agent_id}</a>,
            },
            { title: 'Caller', wideOnly: true, text: 'client' },
            {
              title: 'Stream',
              cell: ({ id }) => (
                <a href={href(['tasks', 'streams', id], query)}>
                  <code class="long-id">{id}</code>
                </a>
              ),
            },
            { title: 'Opened', width: '7rem', wideOnly: true, time: 'opened_at' },
            { title: 'Last event', width: '7.5rem', wideOnly: true, ago: 'last_event_at' },
            { title: 'Events', width: '5rem', count: 'event_count' },
            {
              title: mayEnd ? 'Action' : '',
              width: '5rem',
              cell: (one) =>
                mayEnd && (
                  <button
                    type="button"
                    class="quiet bad"
                    aria-label={`End the stream of ${one.agent_id}`}
                    onClick={() => setEnding(one)}
                  >
                    End
                  </button>
                ),
            },
          ]}
        />
      )}
      {selected !== undefined && data !== undefined && (
        <StreamDialog stream={data.items.find(({ id }) => id === selected)} onClose={() => go(['tasks'], query)} />
      )}
      {ending && (
        <Confirm
          title="End stream"
          action="End"
          onClose={() => setEnding(undefined)}
          run={async () => {
            await act('cancel_stream', { id: ending.id })
            notify('The stream ended.')
            refresh()
          }}
        >
          <p>
            This ends the stream of agent <code>{ending.agent_id}</code> to <UserText>{ending.client}</UserText>. The
            agent is informed.
          </p>
        </Confirm>
      )}
    </Panel>
  )
}

type ListedStream = GetData<'/api/streams'>['items'][number]

interface StreamDialogProps {
  /** Undefined if the stream is not open. */
  readonly stream: ListedStream | undefined
  readonly onClose: () => void
}

/** One stream of an agent with the timeline of its last events. */
function StreamDialog({ stream, onClose }: StreamDialogProps) {
  return (
    <Dialog title="Stream" wide onClose={onClose}>
      {stream === undefined ? (
        <Empty>The stream is not open to a client of this node; streams that ended are not kept.</Empty>
      ) : (
        <div class="stack">
          <StreamFacts stream={stream} />
          <h3>Timeline</h3>
          <StreamTimeline stream={stream} />
        </div>
      )}
    </Dialog>
  )
}

function StreamFacts({ stream: { id, agent_id, client, event_count } }: { readonly stream: ListedStream }) {
  return (
    <Facts
      of={{
        Id: <code>{id}</code>,
        Agent: <a href={href(['agents', agent_id])}>{agent_id}</a>,
        Caller: <UserText>{client}</UserText>,
        Events: count(event_count),
      }}
    />
  )
}

/** The number of events that the server keeps of each stream. */
const KEPT = 20

function StreamTimeline({ stream: { opened_at, events } }: { readonly stream: ListedStream }) {
  const isWhole = events.length < KEPT
  return (
    <>
      {!isWhole && (
        <p class="muted">
          The last {KEPT} events. The stream opened <Time value={opened_at} />.
        </p>
      )}
      <Timeline
        label="Timeline"
        events={[
          ...(isWhole ? [{ time: opened_at, title: 'Opened' }] : []),
          ...events.map(({ time, event, detail }) => ({
            time,
            title: event.charAt(0).toUpperCase() + event.slice(1),
            ...(detail === undefined ? {} : { detail }),
          })),
        ]}
      />
    </>
  )
}
