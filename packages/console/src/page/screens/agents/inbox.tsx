import { useState } from 'preact/hooks'

import type { ApiError, GetData } from '../../api/client.ts'
import { act, get } from '../../api/client.ts'
import { useData, useRoute } from '../../api/use-data.ts'
import { useFurtherPages } from '../../api/use-pages.ts'
import { Segments } from '../../components/controls.tsx'
import { Confirm } from '../../components/dialog-form.tsx'
import { Behind, ErrorOf, notify, Panel, Reading } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { count, plural, span, UserText } from '../../components/values.tsx'
import { go, href, setQuery } from '../../router/location.ts'
import { useMay } from '../../session/operator.ts'
import type { InboxTask } from './task-events.tsx'
import { isCancelable, TaskEventsDialog, TaskPhase } from './task-events.tsx'

const PAGE = 100

interface InboxProps {
  readonly agentId: string
  readonly query: Readonly<Record<string, string>>
  /** The id of the task whose events are shown. */
  readonly selected: string | undefined
}

/** The inbox of an agent: its depth, and its tasks with their events. */
export function Inbox({ agentId, query, selected }: InboxProps) {
  const [cancelling, setCancelling] = useState<InboxTask>()
  const [error, setError] = useState<ApiError>()
  const all = query['tasks'] === 'all'
  const depth = useRoute('/api/agent_inboxes', { agent_id: agentId, limit: 1 }, 2_000)
  const read = (cursor: string | undefined, signal: AbortSignal) =>
    get('/api/agent_tasks', { agent_id: agentId, all, limit: PAGE, cursor }, signal)
  const key = `inbox ${agentId} ${all}`
  const first = useData(key, (signal) => read(undefined, signal), 2_000)
  const list = useFurtherPages({
    key,
    first: first.data,
    load: (cursor, signal) => read(cursor, signal),
    idOf: ({ task_id }) => task_id,
    onError: setError,
  })
  const refresh = (): void => {
    first.refresh()
    depth.refresh()
  }
  return (
    <Panel
      title="Inbox"
      note={first.data && `${plural(first.data.total, 'task')}${all ? '' : ' in progress'}, of all nodes`}
      actions={
        <Segments
          label="Tasks"
          value={all ? 'all' : 'open'}
          options={[
            ['open', 'In progress'],
            ['all', 'All'],
          ]}
          onChange={(tasks) => setQuery({ tasks: tasks === 'all' ? tasks : undefined })}
        />
      }
    >
      <Depth of={depth.data?.items[0]} />
      <ErrorOf error={depth.error} />
      <Reading of={{ error: first.error ?? error, loading: first.loading }} />
      <Behind of={list} />
      {first.data && (
        <Tasks
          tasks={list.items}
          all={all}
          query={query}
          selected={selected}
          onEnd={list.next === null ? undefined : list.more}
          onCancel={setCancelling}
        />
      )}
      {selected !== undefined && (
        <TaskEventsDialog
          agentId={agentId}
          taskId={selected}
          task={list.items.find(({ task_id }) => task_id === selected)}
          onClose={() => go(['agents', agentId], query)}
          onCancel={setCancelling}
        />
      )}
      {cancelling && <CancelTask task={cancelling} onClose={() => setCancelling(undefined)} onCanceled={refresh} />}
    </Panel>
  )
}

function Depth({ of: depth }: { readonly of: GetData<'/api/agent_inboxes'>['items'][number] | undefined }) {
  if (depth === undefined) return null
  const { waiting, in_flight: inFlight, oldest_seconds: oldest } = depth
  return (
    <p>
      {count(waiting)} waiting{waiting > 0 && `, the oldest for ${span(oldest * 1_000)}`}; {count(inFlight)} in flight
    </p>
  )
}

interface TasksProps {
  readonly tasks: readonly InboxTask[]
  readonly all: boolean
  readonly query: Readonly<Record<string, string>>
  readonly selected: string | undefined
  readonly onEnd: (() => void) | undefined
  readonly onCancel: (task: InboxTask) => void
}

function Tasks({ tasks, all, query, selected, onEnd, onCancel }: TasksProps) {
  const mayCancel = useMay('ReadWrite')
  return (
    <Table
      label="Tasks of the inbox"
      empty={all ? 'The inbox has had no task within the time for which tasks are kept.' : 'No task is in progress.'}
      rows={tasks}
      keyOf={({ task_id }) => task_id}
      onOpen={(task) => go(placeOf(task), query)}
      isSelected={({ task_id }) => task_id === selected}
      onEnd={onEnd}
      columns={[
        {
          title: 'Task',
          cell: (task) => (
            <a href={href(placeOf(task), query)}>
              <code class="long-id">{task.task_id}</code>
            </a>
          ),
        },
        { title: 'Caller', width: '11rem', wideOnly: true, text: 'caller' },
        { title: 'State', width: '10rem', cell: (task) => <TaskPhase task={task} /> },
        { title: 'Attempt', width: '5.5rem', wideOnly: true, count: 'attempt' },
        { title: 'Created', width: '7.5rem', ago: 'created_at' },
        {
          title: 'Expires',
          width: '9rem',
          wideOnly: true,
          time: 'expires_at',
        },
        {
          title: mayCancel ? 'Action' : '',
          width: '5.5rem',
          cell: (task) =>
            mayCancel &&
            isCancelable(task) && (
              <button
                type="button"
                class="quiet bad"
                aria-label={`Cancel the task ${task.task_id}`}
                onClick={() => onCancel(task)}
              >
                Cancel
              </button>
            ),
        },
      ]}
    />
  )
}

function placeOf({ agent_id, task_id }: InboxTask): readonly string[] {
  return ['agents', agent_id, task_id]
}

interface CancelTaskProps {
  readonly task: InboxTask
  readonly onClose: () => void
  readonly onCanceled: () => void
}

function CancelTask({ task, onClose, onCanceled }: CancelTaskProps) {
  const { agent_id, caller, phase, task_id } = task
  const isAtOnce = phase === 'stored' || phase === 'waiting'
  return (
    <Confirm
      title="Cancel task"
      action="Cancel task"
      onClose={onClose}
      run={async () => {
        const after = await act('cancel_agent_task', { agent_id, task_id })
        notify(after.phase === 'done' ? 'The task is over.' : 'The agent was asked to cancel the task.')
        onCanceled()
      }}
    >
      <p>
        This cancels the task <code>{task_id}</code> of <UserText>{caller}</UserText>.{' '}
        {isAtOnce ? 'The agent does not get it.' : 'The agent works on it: it is asked to stop, and may finish before.'}
      </p>
    </Confirm>
  )
}
