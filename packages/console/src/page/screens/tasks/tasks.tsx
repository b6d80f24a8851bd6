import { get } from '../../api/client.ts'
import { usePages } from '../../api/use-pages.ts'
import { Page, Panel, Reading } from '../../components/page.tsx'
import { Segments } from '../../components/controls.tsx'
import { count } from '../../components/values.tsx'
import { Table } from '../../components/table.tsx'
import { go, href, setQuery } from '../../router/location.ts'
import type { ScreenProps } from '../screens.ts'
import { Streams } from './streams.tsx'
import { TaskDialog, TaskStatus } from './task-dialog.tsx'
import type { ListedTask } from './task-dialog.tsx'

/** The tasks of `/mcp` and the streams of agents; the place `tasks/ID` is one task, and `tasks/streams/ID` one stream. */
export function Tasks({ place }: ScreenProps) {
  const [, first, second] = place.path
  const stream = first === 'streams' ? second : undefined
  const id = first === 'streams' ? undefined : first
  const all = place.query['show'] === 'all'
  const tasks = usePages(
    `tasks ${all}`,
    (cursor, signal) => get('/api/tasks', { under_way: !all, limit: 1_000, ...cursor }, signal),
    2_000,
  )
  return (
    <Page title="Tasks and streams">
      <Panel
        title="Tasks"
        note={tasks.data && `${count(tasks.data.length)}, of all nodes`}
        actions={
          <Segments
            label="Tasks to show"
            value={all ? 'all' : 'open'}
            options={[
              ['open', 'Under way'],
              ['all', 'All stored'],
            ]}
            onChange={(value) => setQuery({ show: value === 'all' ? value : undefined })}
          />
        }
      >
        <Reading of={tasks} />
        {tasks.data && <TaskTable tasks={tasks.data} all={all} query={place.query} selected={id} />}
      </Panel>
      <Streams query={place.query} selected={stream} />
      {id !== undefined && <TaskDialog id={id} onClose={() => go(['tasks'], place.query)} onChanged={tasks.refresh} />}
    </Page>
  )
}

interface TaskTableProps {
  readonly tasks: readonly ListedTask[]
  readonly all: boolean
  readonly query: Readonly<Record<string, string>>
  readonly selected: string | undefined
}

function TaskTable({ tasks, all, query, selected }: TaskTableProps) {
  return (
    <Table
      label="Tasks"
      empty={
        all
          ? 'No task is stored. A call of a tool becomes a task if it takes longer than 3 seconds and its client supports tasks.'
          : 'No task is under way.'
      }
      rows={tasks}
      keyOf={({ id }) => id}
      onOpen={({ id }) => go(['tasks', id], query)}
      isSelected={({ id }) => id === selected}
      columns={[
        {
          title: 'Task',
          cell: ({ id }) => (
            <a href={href(['tasks', id], query)}>
              <code class="long-id">{id}</code>
            </a>
          ),
        },
        { title: 'Tool', width: '10rem', wideOnly: true, cell: ({ tool }) => <code>{tool}</code> },
        { title: 'Owner', width: '11rem', wideOnly: true, text: 'owner' },
        { title: 'State', width: '9rem', cell: ({ status }) => <TaskStatus status={status} /> },
        { title: 'Created', width: '8rem', wideOnly: true, ago: 'created_at' },
        { title: 'Changed', width: '8rem', ago: 'updated_at' },
      ]}
    />
  )
}
