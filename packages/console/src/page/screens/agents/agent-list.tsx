import { useMemo } from 'preact/hooks'

import { get } from '../../api/client.ts'
import type { GetData } from '../../api/client.ts'
import { total, useHistory } from '../../api/use-history.ts'
import type { HistoryData } from '../../api/use-history.ts'
import { usePages } from '../../api/use-pages.ts'
import type { CursorQuery } from '../../api/use-pages.ts'
import { Search } from '../../components/controls.tsx'
import { Page, Reading } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import type { Column } from '../../components/table.tsx'
import { Badge, count, hasText, plural, span, UserText } from '../../components/values.tsx'
import { go, href } from '../../router/location.ts'

export type ListedAgent = GetData<'/api/agents'>['items'][number]

type AgentHistory = HistoryData['agents'][number]

/** The agents with figures in the list; the node keeps those of the most active ones. */
const WITH_FIGURES = 50

export function readAgents(cursor: CursorQuery, signal: AbortSignal) {
  return get('/api/agents', { limit: 1_000, ...cursor }, signal)
}

/** Every registered agent, with its liveness and its calls of the last hour. */
export function AgentList({ search }: { readonly search: string }) {
  const agents = usePages('agents', readAgents, 5_000)
  const { data } = agents
  const history = useHistory('hour', { channels: 0, agents: WITH_FIGURES })
  const shown = useMemo(() => (data ?? []).filter((agent) => matches(agent, search)), [data, search])
  const histories = useMemo(() => new Map(history.data?.agents.map((agent) => [agent.agent_id, agent])), [history.data])
  return (
    <Page
      title="Agents"
      note={agents.loading ? undefined : plural(data?.length ?? 0, 'agent')}
      actions={<Search label="Find an agent" />}
    >
      <Reading of={agents} />
      {data !== undefined && (
        <Table
          label="Agents"
          rows={shown}
          empty={
            data.length === 0
              ? 'No agent is registered. An agent registers with POST /agents/register at the shared listener.'
              : 'No agent has this text in its id, name, owner or URL.'
          }
          keyOf={({ agent_id }) => agent_id}
          onOpen={({ agent_id }) => go(['agents', agent_id])}
          columns={columnsWith(histories)}
        />
      )}
    </Page>
  )
}

function matches({ agent_id, name, registered_by, url }: ListedAgent, search: string): boolean {
  return hasText(search, agent_id, name, registered_by, url)
}

function columnsWith(histories: ReadonlyMap<string, AgentHistory>): readonly Column<ListedAgent>[] {
  const figure = (read: (history: AgentHistory) => string) => (agent: ListedAgent) => {
    const history = histories.get(agent.agent_id)
    return history === undefined ? <span class="muted">–</span> : read(history)
  }
  return [
    {
      title: 'Agent',
      cell: ({ agent_id, name }) => (
        <>
          <a href={href(['agents', agent_id])}>{agent_id}</a>{' '}
          <span class="muted">
            <UserText>{name}</UserText>
          </span>
        </>
      ),
    },
    {
      title: 'Version',
      width: '6rem',
      wideOnly: true,
      cell: ({ version }) => <UserText max={20}>{version}</UserText>,
    },
    { title: 'Owner', width: '10rem', wideOnly: true, text: 'registered_by' },
    { title: 'State', width: '7rem', cell: (agent) => <Liveness agent={agent} /> },
    { title: 'Mode', width: '6rem', wideOnly: true, cell: (agent) => <Mode agent={agent} /> },
    { title: 'Last seen', width: '7rem', wideOnly: true, ago: 'last_seen' },
    { title: 'In flight', width: '5.5rem', wideOnly: true, count: 'in_flight' },
    {
      title: 'Calls, 1 h',
      numeric: true,
      width: '6.5rem',
      wideOnly: true,
      cell: figure(({ calls }) => count(total(calls))),
    },
    {
      title: 'Errors, 1 h',
      numeric: true,
      width: '6.5rem',
      cell: figure(({ errors }) => count(total(errors))),
    },
    {
      title: 'Latency, 1 h',
      numeric: true,
      width: '7rem',
      wideOnly: true,
      cell: figure(meanLatency),
    },
  ]
}

/** Returns the mean duration of the calls, weighted by their number. */
function meanLatency({ calls, latency_seconds: latency }: AgentHistory): string {
  const seconds = latency.reduce<number>((sum, value, step) => sum + (value ?? 0) * (calls[step] ?? 0), 0)
  const number = total(calls)
  return number === 0 ? '–' : span((seconds / number) * 1_000)
}

/** The time before an expiry in which an agent is late, in ms. */
const SOON_MS = 15_000

/** How an agent gets its calls, unless it is called at once and nothing is kept. */
function Mode({ agent: { durable, inbox } }: { readonly agent: ListedAgent }) {
  if (inbox === 'pull') return <>Pull</>
  if (inbox === 'offline') return <>Queued</>
  return durable ? <>Durable</> : <span class="muted">–</span>
}

interface LivenessProps {
  readonly agent: { readonly is_alive: boolean; readonly expires_at: string | null; readonly offline?: boolean }
}

/** The state of an agent or an instance by its heartbeats. */
export function Liveness({ agent: { is_alive, expires_at, offline = false } }: LivenessProps) {
  // Its requests wait for it.
  if (offline) return <Badge kind="neutral">Offline</Badge>
  if (!is_alive) return <Badge kind="bad">Expired</Badge>
  if (expires_at !== null && Date.parse(expires_at) - Date.now() < SOON_MS)
    return <Badge kind="warning">Expires soon</Badge>
  return <Badge kind="good">Alive</Badge>
}
