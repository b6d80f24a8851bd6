import { useState } from 'preact/hooks'

import type { GetData } from '../../api/client.ts'
import { act, get } from '../../api/client.ts'
import { useData } from '../../api/use-data.ts'
import { usePages } from '../../api/use-pages.ts'
import { Confirm } from '../../components/confirm.tsx'
import { Empty, ErrorOf, Loading, notify } from '../../components/feedback.tsx'
import { Segments } from '../../components/fields.tsx'
import { count } from '../../components/format.ts'
import { Page, Panel } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { Ago, Time } from '../../components/time.tsx'
import { UserText } from '../../components/user-text.tsx'
import { go, href, setQuery } from '../../router/location.ts'
import { useMay } from '../../session/operator.ts'
import type { ScreenProps } from '../screens.ts'
import { TaskDialog } from './task-dialog.tsx'
import type { ListedTask } from './task-status.tsx'
import { TaskStatus } from './task-status.tsx'

type ListedStream = GetData<'/api/streams'>['items'][number]

/** The tasks of `/mcp` and the streams of agents; the place `tasks/ID` is one task. */
export function Tasks({ place }: ScreenProps) {
  const [, id] = place.path
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
        <ErrorOf error={tasks.error} />
        {tasks.loading && <Loading />}
        {tasks.data?.length === 0 && (
          <Empty>
            {all
              ? 'No task is stored. A call of a tool becomes a task if it takes longer than 3 seconds and its client supports tasks.'
              : 'No task is under way.'}
          </Empty>
        )}
        {tasks.data !== undefined && tasks.data.length > 0 && (
          <TaskTable tasks={tasks.data} query={place.query} selected={id} />
        )}
      </Panel>
      <Streams />
      {id !== undefined && <TaskDialog id={id} onClose={() => go(['tasks'], place.query)} onChanged={tasks.refresh} />}
    </Page>
  )
}

interface TaskTableProps {
  readonly tasks: readonly ListedTask[]
  readonly query: Readonly<Record<string, string>>
  readonly selected: string | undefined
}

function TaskTable({ tasks, query, selected }: TaskTableProps) {
  return (
    <Table
      label="Tasks"
      rows={tasks}
      keyOf={({ id }) => id}
      onOpen={({ id }) => go(['tasks', id], query)}
      isSelected={({ id }) => id === selected}
      columns={[
        {
          id: 'id',
          title: 'Task',
          cell: ({ id }) => (
            <a href={href(['tasks', id], query)}>
              <code>{id}</code>
            </a>
          ),
        },
        { id: 'tool', title: 'Tool', width: '10rem', wideOnly: true, cell: ({ tool }) => <code>{tool}</code> },
        {
          id: 'owner',
          title: 'Owner',
          width: '11rem',
          wideOnly: true,
          cell: ({ owner }) => <UserText>{owner}</UserText>,
        },
        { id: 'status', title: 'State', width: '9rem', cell: ({ status }) => <TaskStatus status={status} /> },
        {
          id: 'created',
          title: 'Created',
          width: '8rem',
          wideOnly: true,
          cell: (task) => <Ago value={task.created_at} />,
        },
        { id: 'updated', title: 'Changed', width: '8rem', cell: (task) => <Ago value={task.updated_at} /> },
      ]}
    />
  )
}

function Streams() {
  const [ending, setEnding] = useState<ListedStream>()
  const mayEnd = useMay('ReadWrite')
  const { data, error, loading, refresh } = useData(
    'streams',
    (signal) => get('/api/streams', { limit: 1_000 }, signal),
    2_000,
  )
  return (
    <Panel title="Streams of agents" note={data && `${count(data.items.length)}, of this node`}>
      <ErrorOf error={error} />
      {loading && <Loading />}
      {data?.items.length === 0 && <Empty>No stream of an agent is open to a client of this node.</Empty>}
      {data !== undefined && data.items.length > 0 && (
        <Table
          label="Streams of agents"
          rows={data.items}
          keyOf={({ id }) => id}
          columns={[
            {
              id: 'agent',
              title: 'Agent',
              cell: ({ agent_id }) => <a href={href(['agents', agent_id])}>{agent_id}</a>,
            },
            { id: 'client', title: 'Caller', cell: ({ client }) => <UserText>{client}</UserText> },
            { id: 'id', title: 'Stream', wideOnly: true, cell: ({ id }) => <code>{id}</code> },
            {
              id: 'opened',
              title: 'Opened',
              width: '7rem',
              wideOnly: true,
              cell: (one) => <Time value={one.opened_at} />,
            },
            {
              id: 'last',
              title: 'Last event',
              width: '7.5rem',
              wideOnly: true,
              cell: (one) => <Ago value={one.last_event_at} />,
            },
            { id: 'events', title: 'Events', width: '5rem', numeric: true, cell: (one) => count(one.event_count) },
            {
              id: 'end',
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
