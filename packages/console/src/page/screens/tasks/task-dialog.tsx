import { act, get } from '../../api/client.ts'
import type { GetData } from '../../api/client.ts'
import { useData } from '../../api/use-data.ts'
import { findIn } from '../../api/use-pages.ts'
import type { CursorQuery } from '../../api/use-pages.ts'
import { useCall } from '../../components/call.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { Empty, ErrorOf, Facts, notify, Reading } from '../../components/page.tsx'
import { Timeline } from '../../components/timeline.tsx'
import { Badge, Time, UserText } from '../../components/values.tsx'
import type { BadgeKind } from '../../components/values.tsx'
import { useMay } from '../../session/operator.ts'

interface TaskDialogProps {
  readonly id: string
  readonly onClose: () => void
  readonly onChanged: () => void
}

/** One task with its timeline. */
export function TaskDialog({ id, onClose, onChanged }: TaskDialogProps) {
  const { data, error, loading, refresh } = useData(`task ${id}`, (signal) => readTask(id, signal), 2_000)
  return (
    <Dialog title="Task" wide onClose={onClose}>
      <Reading of={{ error, loading }} />
      {data === null && <Empty>No task has this id. Tasks are removed some time after their end.</Empty>}
      {data && (
        <div class="stack">
          <TaskFacts task={data} />
          <h3>Timeline</h3>
          {data.events.length === 0 ? (
            <p class="muted">This node has seen no change of the task.</p>
          ) : (
            <Timeline
              label="Timeline"
              events={data.events.map(({ time, event, detail }) => ({
                time,
                title: <TaskEvent event={event} />,
                ...(detail === undefined ? {} : { detail: <UserText max={2_000}>{detail}</UserText> }),
              }))}
            />
          )}
          <Cancel
            task={data}
            onCancelled={() => {
              refresh()
              onChanged()
            }}
          />
        </div>
      )}
    </Dialog>
  )
}

/** Returns a task; null if it is not stored. */
async function readTask(id: string, signal: AbortSignal): Promise<ListedTask | null> {
  return (await findIn(readTasks, (task) => task.id === id, signal)) ?? null
}

function readTasks(cursor: CursorQuery, signal: AbortSignal) {
  return get('/api/tasks', { limit: 1_000, ...cursor }, signal)
}

function TaskFacts({ task }: { readonly task: ListedTask }) {
  const { id, tool, owner, status, status_message: message, created_at, updated_at, expires_at } = task
  return (
    <Facts
      of={{
        State: (
          <>
            <TaskStatus status={status} /> {message !== undefined && <UserText max={2_000}>{message}</UserText>}
          </>
        ),
        Id: <code>{id}</code>,
        Tool: <code>{tool}</code>,
        Owner: <UserText>{owner}</UserText>,
        Created: <Time value={created_at} />,
        Changed: <Time value={updated_at} />,
        Removed: isUnderWay(status) ? (
          'some time after its end'
        ) : (
          <>
            after <Time value={expires_at} />
          </>
        ),
      }}
    />
  )
}

function TaskEvent({ event }: { readonly event: string }) {
  return <>{event.charAt(0).toUpperCase() + event.slice(1).replaceAll('_', ' ')}</>
}

function Cancel({
  task: { id, status },
  onCancelled,
}: {
  readonly task: ListedTask
  readonly onCancelled: () => void
}) {
  const mayCancel = useMay('ReadWrite')
  const call = useCall<void>()
  if (!mayCancel || !isUnderWay(status)) return null
  const cancel = async (): Promise<void> => {
    await act('cancel_task', { id })
    notify('The task was cancelled.')
    onCancelled()
  }
  return (
    <>
      <ErrorOf error={call.error} />
      <div class="buttons">
        <button type="button" class="danger" onClick={() => call.start(cancel)}>
          Cancel task
        </button>
      </div>
    </>
  )
}

export type ListedTask = GetData<'/api/tasks'>['items'][number]

const KINDS: Readonly<Record<string, readonly [BadgeKind, string]>> = {
  working: ['neutral', 'Working'],
  input_required: ['warning', 'Waits for input'],
  completed: ['good', 'Completed'],
  failed: ['bad', 'Failed'],
  cancelled: ['neutral', 'Cancelled'],
}

/** The state of a task in words. */
export function TaskStatus({ status }: { readonly status: string }) {
  const [kind, text] = KINDS[status] ?? ['neutral', status]
  return <Badge kind={kind}>{text}</Badge>
}

/** Returns `true` while a task can be cancelled. */
function isUnderWay(status: string): boolean {
  return status === 'working' || status === 'input_required'
}
