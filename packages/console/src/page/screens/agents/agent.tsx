import { useState } from 'preact/hooks'

import { act } from '../../api/client.ts'
import { useData, useRoute } from '../../api/use-data.ts'
import { perSecond, useHistory } from '../../api/use-history.ts'
import type { HistoryData } from '../../api/use-history.ts'
import { findIn } from '../../api/use-pages.ts'
import { JsonView } from '../../components/body-view.tsx'
import { Confirm } from '../../components/dialog-form.tsx'
import { HistoryPlots, RangeChoice, secondsSpan, useRange } from '../../components/plot.tsx'
import type { HistoryPlot } from '../../components/plot.tsx'
import { ErrorOf, Facts, Loading, notify, Page, Panel } from '../../components/page.tsx'
import { Table } from '../../components/table.tsx'
import { Ago, count, plural, rate, Time, UserText } from '../../components/values.tsx'
import { go, href } from '../../router/location.ts'
import { useMay } from '../../session/operator.ts'
import { About, readCard, Skills } from './agent-card.tsx'
import { Inbox } from './inbox.tsx'
import { TaskEventsDialog } from './task-events.tsx'
import { Liveness, readAgents } from './agent-list.tsx'
import type { ListedAgent } from './agent-list.tsx'
import { TestCall } from './test-call.tsx'

interface AgentProps {
  readonly id: string
  /** The id of the task that is shown. */
  readonly task: string | undefined
  readonly query: Readonly<Record<string, string>>
}

/** Everything about one agent. */
export function Agent({ id, task, query }: AgentProps) {
  const [deregistering, setDeregistering] = useState(false)
  const [source, setSource] = useState(false)
  const mayDeregister = useMay('Admin')
  const card = useRoute('/api/agent_card', { agent_id: id }, 30_000)
  const listed = useData(`agent ${id}`, (signal) => readAgent(id, signal), 5_000)
  const agent = listed.data
  const shown = card.data && readCard(card.data.card)
  return (
    <Page
      up={{ title: 'Agents', to: href(['agents']) }}
      title={<UserText>{agent?.name ?? id}</UserText>}
      note={agent && <Liveness agent={agent} />}
      actions={
        <>
          <a href={href(['audit'], { channel: id })}>Audit log</a>
          {mayDeregister && agent && (
            <button type="button" onClick={() => setDeregistering(true)}>
              Deregister
            </button>
          )}
        </>
      }
    >
      <ErrorOf error={card.error ?? listed.error} />
      {card.loading && <Loading />}
      <div class="grid">
        {agent && <AgentFacts agent={agent} />}
        {shown && <About card={shown} />}
      </div>
      {shown && <Skills card={shown} />}
      {agent?.inbox !== undefined && <Inbox agentId={id} query={query} selected={task} />}
      {agent && agent.inbox === undefined && task !== undefined && (
        <TaskEventsDialog agentId={id} taskId={task} task={undefined} onClose={() => go(['agents', id])} />
      )}
      {agent && <AgentPlots id={id} />}
      {agent?.instances && <Instances instances={agent.instances} />}
      {agent && <TestCall id={id} />}
      {card.data && (
        <Panel
          title="Card"
          note="As the owner registered it"
          actions={
            <button type="button" class="quiet" aria-expanded={source} onClick={() => setSource(!source)}>
              {source ? 'Hide' : 'Show'}
            </button>
          }
        >
          {source && <JsonView label="Card" value={card.data.card} />}
        </Panel>
      )}
      {deregistering && (
        <Confirm
          title="Deregister agent"
          name={id}
          action="Deregister"
          onClose={() => setDeregistering(false)}
          run={async () => {
            await act('deregister_agent', { agent_id: id })
            notify(`Agent ${id} deregistered.`)
            go(['agents'])
          }}
        >
          <p>
            This removes the agent from the registry of all nodes. {plural(agent?.in_flight ?? 0, 'request')} of this
            node to it {agent?.in_flight === 1 ? 'is' : 'are'} under way. The agent can register again.
          </p>
        </Confirm>
      )}
    </Page>
  )
}

/** Returns the entry of one agent in the list; undefined if there is none. */
function readAgent(id: string, signal: AbortSignal): Promise<ListedAgent | undefined> {
  return findIn(readAgents, ({ agent_id }) => agent_id === id, signal)
}

const INBOXES: Readonly<Record<NonNullable<ListedAgent['inbox']>, string>> = {
  pull: 'the agent leases them from its inbox',
  offline: 'wait in the inbox while the agent cannot be reached',
}

function AgentFacts({ agent }: { readonly agent: ListedAgent }) {
  const expiry =
    agent.expires_at === null || agent.offline ? (
      `, ${agent.offline ? 'stays registered' : 'does not expire'}`
    ) : (
      <>
        , expires <Time value={agent.expires_at} />
      </>
    )
  return (
    <Facts
      of={{
        Id: <code>{agent.agent_id}</code>,
        Version: agent.version !== '' && <UserText>{agent.version}</UserText>,
        // A pull agent has none.
        Address: agent.url !== '' && <UserText max={2_048}>{agent.url}</UserText>,
        Owner:
          agent.registered_by === '' ? <span class="muted">none</span> : <UserText>{agent.registered_by}</UserText>,
        Requests: agent.inbox !== undefined && INBOXES[agent.inbox],
        Answers: agent.durable && 'kept for repeated requests and interrupted streams',
        Registered: <Time value={agent.registered_at} />,
        'Last seen': (
          <>
            <Ago value={agent.last_seen} />
            {expiry}
          </>
        ),
        'In flight': `${plural(agent.in_flight, 'request')} of this node`,
      }}
    />
  )
}

/** The instances of an agent, among which the gateway shares its requests. */
function Instances({ instances }: { readonly instances: NonNullable<ListedAgent['instances']> }) {
  return (
    <Panel title="Instances" note={count(instances.length)}>
      <Table
        label="Instances"
        rows={instances}
        keyOf={({ instance_id }) => instance_id}
        columns={[
          { title: 'Instance', text: 'instance_id' },
          { title: 'Address', wideOnly: true, text: 'url' },
          { title: 'State', width: '8rem', cell: (instance) => <Liveness agent={instance} /> },
          { title: 'Last seen', width: '8rem', ago: 'last_seen' },
          { title: 'In flight', width: '6rem', count: 'in_flight' },
        ]}
      />
    </Panel>
  )
}

/** The calls, errors and latency of one agent. */
function AgentPlots({ id }: { readonly id: string }) {
  const { data, error } = useHistory(useRange(), { agent_id: id, channels: 0 })
  return (
    <Panel title="Calls" note="Calls at /a2a of this node" actions={<RangeChoice />}>
      <ErrorOf error={error} />
      {data && (
        <HistoryPlots
          history={data}
          plotsOf={plotsOf}
          empty="No call to this agent has ended here. The plots begin with the first one."
        />
      )}
    </Panel>
  )
}

function plotsOf(history: HistoryData): readonly HistoryPlot[] {
  const [agent] = history.agents
  if (agent === undefined || history.steps === 0) return []
  return [
    {
      title: 'Calls and errors',
      lines: [
        { label: 'calls', values: perSecond(agent.calls, history) },
        { label: 'errors', values: perSecond(agent.errors, history) },
      ],
      format: rate,
    },
    { title: 'Latency', lines: [{ label: 'mean', values: agent.latency_seconds }], format: secondsSpan },
  ]
}
