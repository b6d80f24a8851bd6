import type { GetData } from '../../api/client.ts'
import { Dialog } from '../../components/dialog.tsx'
import { Fact } from '../../components/fact.tsx'
import { Empty } from '../../components/feedback.tsx'
import { count } from '../../components/format.ts'
import { Time } from '../../components/time.tsx'
import { Timeline } from '../../components/timeline.tsx'
import { UserText } from '../../components/user-text.tsx'
import { href } from '../../router/location.ts'

export type ListedStream = GetData<'/api/streams'>['items'][number]

interface StreamDialogProps {
  /** Undefined if the stream is not open. */
  readonly stream: ListedStream | undefined
  readonly onClose: () => void
}

/** One stream of an agent with the timeline of its last events. */
export function StreamDialog({ stream, onClose }: StreamDialogProps) {
  return (
    <Dialog title="Stream" wide onClose={onClose}>
      {stream === undefined ? (
        <Empty>The stream is not open to a client of this node; streams that ended are not kept.</Empty>
      ) : (
        <div class="stack">
          <Facts stream={stream} />
          <h3>Timeline</h3>
          <StreamTimeline stream={stream} />
        </div>
      )}
    </Dialog>
  )
}

function Facts({ stream: { id, agent_id, client, event_count } }: { readonly stream: ListedStream }) {
  return (
    <dl class="facts">
      <Fact name="Id">
        <code>{id}</code>
      </Fact>
      <Fact name="Agent">
        <a href={href(['agents', agent_id])}>{agent_id}</a>
      </Fact>
      <Fact name="Caller">
        <UserText>{client}</UserText>
      </Fact>
      <Fact name="Events">{count(event_count)}</Fact>
    </dl>
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
