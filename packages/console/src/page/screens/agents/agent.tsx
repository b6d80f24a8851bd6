import { useState } from 'preact/hooks'

import { act, get } from '../../api/client.ts'
import { useData } from '../../api/use-data.ts'
import { Confirm } from '../../components/confirm.tsx'
import { ErrorOf, Loading, notify } from '../../components/feedback.tsx'
import { plural } from '../../components/format.ts'
import { JsonView } from '../../components/json-view.tsx'
import { Page, Panel } from '../../components/page.tsx'
import { Ago, Time } from '../../components/time.tsx'
import { UserText } from '../../components/user-text.tsx'
import type { Place } from '../../router/location.ts'
import { go, href } from '../../router/location.ts'
import { useMay } from '../../session/operator.ts'
import { readCard } from './agent-card.ts'
import type { ListedAgent } from './agent-list.tsx'
import { AgentPlots } from './agent-plots.tsx'
import { About, Skills } from './card-view.tsx'
import { Instances } from './instances.tsx'
import { Liveness } from './liveness.tsx'
import { TestCall } from './test-call.tsx'

/** Everything about one agent. */
export function Agent({ id, place }: { readonly id: string; readonly place: Place }) {
  const [deregistering, setDeregistering] = useState(false)
  const [source, setSource] = useState(false)
  const mayDeregister = useMay('Admin')
  const card = useData(`card ${id}`, (signal) => get('/api/agent_card', { agent_id: id }, signal), 30_000)
  const listed = useData(`agent ${id}`, (signal) => readAgent(id, signal), 5_000)
  const agent = listed.data
  const shown = card.data && readCard(card.data.card)
  return (
    <Page
      title={
        <>
          <a class="up" href={href(['agents'])}>
            Agents
          </a>{' '}
          <UserText>{agent?.name ?? id}</UserText>
        </>
      }
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
        {agent && <Facts agent={agent} />}
        {shown && <About card={shown} />}
      </div>
      {shown && <Skills card={shown} />}
      {agent && <AgentPlots id={id} range={place.query['range']} />}
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
async function readAgent(id: string, signal: AbortSignal): Promise<ListedAgent | undefined> {
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<typeof readPage>> = await readPage(cursor, signal)
    const found = page.items.find(({ agent_id }) => agent_id === id)
    if (found !== undefined) return found
    cursor = page.next_cursor
  } while (cursor !== null)
  return undefined
}

function readPage(cursor: string | null, signal: AbortSignal) {
  return get('/api/agents', { limit: 1_000, ...(cursor === null ? {} : { cursor }) }, signal)
}

function Facts({ agent }: { readonly agent: ListedAgent }) {
  return (
    <dl class="facts">
      <dt>Id</dt>
      <dd>
        <code>{agent.agent_id}</code>
      </dd>
      {agent.version !== '' && (
        <>
          <dt>Version</dt>
          <dd>
            <UserText>{agent.version}</UserText>
          </dd>
        </>
      )}
      <dt>Address</dt>
      <dd>
        <UserText max={2_048}>{agent.url}</UserText>
      </dd>
      <dt>Owner</dt>
      <dd>
        {agent.registered_by === '' ? <span class="muted">none</span> : <UserText>{agent.registered_by}</UserText>}
      </dd>
      <dt>Registered</dt>
      <dd>
        <Time value={agent.registered_at} />
      </dd>
      <dt>Last seen</dt>
      <dd>
        <Ago value={agent.last_seen} />
        {agent.expires_at === null ? (
          ', does not expire'
        ) : (
          <>
            , expires <Time value={agent.expires_at} />
          </>
        )}
      </dd>
      <dt>In flight</dt>
      <dd>{plural(agent.in_flight, 'request')} of this node</dd>
    </dl>
  )
}
