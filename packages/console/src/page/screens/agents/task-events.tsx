import { useMemo, useState } from 'preact/hooks'

import type { ApiError, GetData } from '../../api/client.ts'
import { get } from '../../api/client.ts'
import { useData } from '../../api/use-data.ts'
import { useFurtherPages } from '../../api/use-pages.ts'
import { Dialog } from '../../components/dialog.tsx'
import { Empty, ErrorOf, Facts, Loading } from '../../components/page.tsx'
import { Timeline } from '../../components/timeline.tsx'
import type { BadgeKind } from '../../components/values.tsx'
import { Badge, bytes, count, Time, UserCode, UserText } from '../../components/values.tsx'
import { useMay } from '../../session/operator.ts'

type EventPage = GetData<'/api/agent_task_events'>
type TaskEvent = EventPage['items'][number]

const PAGE = 50

/** The bytes of a payload that are shown. */
const MAX_PAYLOAD = 16_384

interface TaskEventsProps {
  readonly agentId: string
  readonly taskId: string
  /** The task in the list; undefined if it is not there. */
  readonly task: InboxTask | undefined
  readonly onClose: () => void
  /** @default the task cannot be canceled */
  readonly onCancel?: (task: InboxTask) => void
}

/** One task with the events that the server keeps of it. */
export function TaskEventsDialog({ agentId, taskId, task, onClose, onCancel }: TaskEventsProps) {
  const [error, setError] = useState<ApiError>()
  const mayCancel = useMay('ReadWrite')
  const read = async (from: number | undefined, signal: AbortSignal) => {
    const query = { agent_id: agentId, task_id: taskId, from_sequence: from, limit: PAGE, max_body_size: MAX_PAYLOAD }
    const page = await get('/api/agent_task_events', query, signal)
    return { ...page, next_cursor: page.next_sequence }
  }
  const key = `events ${agentId} ${taskId}`
  const first = useData(key, (signal) => read(undefined, signal), 2_000)
  const list = useFurtherPages({
    key,
    first: first.data,
    load: (from: number, signal) => read(from, signal),
    idOf: ({ sequence }) => sequence,
    onError: setError,
  })
  return (
    <Dialog title="Task" wide onClose={onClose}>
      <div class="stack">
        <TaskFacts taskId={taskId} task={task} page={first.data} />
        {task !== undefined && onCancel !== undefined && mayCancel && isCancelable(task) && (
          <div class="buttons start">
            <button type="button" class="danger" onClick={() => onCancel(task)}>
              Cancel task
            </button>
          </div>
        )}
        <h3>Events</h3>
        <ErrorOf error={first.error ?? error} />
        {first.loading && <Loading />}
        {first.data && <Removed before={first.data.first_sequence} />}
        {first.data && list.items.length === 0 && <Empty>The agent has not written an event.</Empty>}
        <EventList events={list.items} />
        {list.next !== null && (
          <div class="buttons start">
            <button type="button" onClick={list.more}>
              Show more events
            </button>
          </div>
        )}
      </div>
    </Dialog>
  )
}

interface TaskFactsProps {
  readonly taskId: string
  readonly task: InboxTask | undefined
  readonly page: EventPage | undefined
}

function TaskFacts({ taskId, task, page }: TaskFactsProps) {
  const caller = task?.caller ?? page?.caller
  return (
    <Facts
      of={{
        State: task !== undefined && <TaskPhase task={task} />,
        Id: <code>{taskId}</code>,
        Caller: caller !== undefined && <UserText>{caller}</UserText>,
        Context: task !== undefined && <UserCode>{task.context_id}</UserCode>,
        Attempt: task !== undefined && count(task.attempt),
        Created: task !== undefined && <Time value={task.created_at} />,
        Expires: task?.phase === 'stored' && <Time value={task.expires_at} />,
      }}
    />
  )
}

function Removed({ before }: { readonly before: number }) {
  if (before === 1) return null
  return <p class="muted">Events before {count(before)} are not kept any more.</p>
}

/** The kinds of events in words. */
const KINDS: Readonly<Record<string, string>> = {
  task: 'Task',
  status: 'Status',
  artifact: 'Artifact',
  message: 'Message',
  answer: 'Answer',
  end: 'End of the answer',
  error: 'Error',
  other: 'Event',
}

function EventList({ events }: { readonly events: readonly TaskEvent[] }) {
  const shown = useMemo(() => events.map(shownEvent), [events])
  return shown.length === 0 ? null : <Timeline label="Events" events={shown} />
}

function shownEvent({
  body,
  body_encoding: encoding,
  body_size: size,
  kind,
  sequence,
  state,
  time,
  truncated,
}: TaskEvent) {
  const title = (
    <>
      {count(sequence)} {KINDS[kind] ?? kind}
      {state !== undefined && (
        <>
          : <UserText max={64}>{stateName(state)}</UserText>
        </>
      )}{' '}
      <small class="muted">
        {bytes(size)}
        {truncated && `, the first ${bytes(MAX_PAYLOAD)} shown`}
      </small>
    </>
  )
  // The end has no content.
  if (kind === 'end') return { time, title: KINDS['end'] }
  const detail = encoding === undefined ? <UserCode max={2 * MAX_PAYLOAD}>{pretty(body)}</UserCode> : 'Binary data'
  return { time, title, detail }
}

/** Returns a state of either version of A2A, such as `input required`. */
function stateName(state: string): string {
  return state
    .replace(/^TASK_STATE_/, '')
    .toLowerCase()
    .replaceAll(/[_-]/g, ' ')
}

/** Returns the content of a JSON-RPC response, or other JSON, on several lines. */
function pretty(text: string): string {
  try {
    const value: unknown = JSON.parse(text)
    const isResponse = typeof value === 'object' && value !== null && 'jsonrpc' in value && 'result' in value
    return JSON.stringify(isResponse ? value.result : value, undefined, 2)
  } catch {
    return text
  }
}

/** A task of an inbox. */
export type InboxTask = GetData<'/api/agent_tasks'>['items'][number]

/** Returns `true` for a task that is not over and that nobody has canceled. */
export function isCancelable({ phase, cancel_requested }: InboxTask): boolean {
  return phase !== 'done' && !cancel_requested
}

const PHASES: Readonly<Record<InboxTask['phase'], readonly [BadgeKind, string]>> = {
  stored: ['neutral', 'Waiting'],
  delivered: ['neutral', 'Delivered'],
  working: ['neutral', 'Working'],
  waiting: ['warning', 'Waits for input'],
  done: ['good', 'Over'],
}

const REASONS: Readonly<Record<string, string>> = {
  DELIVERY_EXPIRED: 'Expired',
  DELIVERY_FAILED: 'Not delivered',
  REJECTED: 'Rejected',
  CANCELED: 'Canceled',
}

/** The state of a task in words. */
export function TaskPhase({ task: { phase, reason, cancel_requested: isAsked } }: { readonly task: InboxTask }) {
  if (phase === 'done' && reason !== undefined) {
    return <Badge kind={reason === 'CANCELED' ? 'neutral' : 'bad'}>{REASONS[reason] ?? reason}</Badge>
  }
  if (isAsked && phase !== 'done') return <Badge kind="warning">To be canceled</Badge>
  const [kind, text] = PHASES[phase]
  return <Badge kind={kind}>{text}</Badge>
}
