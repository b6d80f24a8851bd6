import { argument, isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import { defineAction, defineManagementRoute, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import { pageOf, pageSchema, pagingParameters } from '../paging.ts'
import type { AgentInstanceStatus, AgentProbe, AgentStatus } from '../agent-ports.ts'

const EXPIRES_AT = Type.Union([Type.String(), Type.Null()], {
  description: 'The time of expiry without another heartbeat, ISO 8601; null if agents do not expire.',
})

const IN_FLIGHT = Type.Integer({ minimum: 0, description: 'Requests and streams under way from this node.' })

function expiry({ expires_at }: Pick<AgentStatus, 'expires_at'>): string | null {
  return expires_at === null ? null : isoTime(expires_at)
}

function isAlive({ expires_at }: Pick<AgentStatus, 'expires_at'>): boolean {
  return expires_at === null || expires_at > Date.now()
}

function shownInstance(instance: AgentInstanceStatus) {
  const { instance_id, url, registered_at, last_seen, in_flight } = instance
  return {
    instance_id,
    url,
    registered_at: isoTime(registered_at),
    last_seen: isoTime(last_seen),
    expires_at: expiry(instance),
    is_alive: isAlive(instance),
    in_flight,
  }
}

function shownProbe({ at, error }: AgentProbe) {
  return { status: error === undefined ? ('ok' as const) : ('failing' as const), last_probe: isoTime(at), error }
}

function shownAgent(agent: AgentStatus) {
  const { probe, instances = [] } = agent
  return {
    agent_id: agent.agent_id,
    name: agent.name,
    version: agent.version,
    url: agent.url,
    registered_by: agent.registered_by,
    registered_at: isoTime(agent.registered_at),
    last_seen: isoTime(agent.last_seen),
    expires_at: expiry(agent),
    is_alive: isAlive(agent),
    in_flight: agent.in_flight,
    offline: agent.offline ?? false,
    durable: agent.durable ?? false,
    inbox: agent.inbox,
    probe: probe && shownProbe(probe),
    instances: instances.length === 0 ? undefined : instances.map(shownInstance),
  }
}

const agentsRoute = defineManagementRoute({
  name: '/api/agents',
  summary: 'The registered agents, with their last heartbeat and the requests under way from this node.',
  input: Type.Object(pagingParameters, STRICT),
  output: pageSchema(
    Type.Object({
      agent_id: Type.String(),
      name: Type.String(),
      version: Type.String(),
      url: Type.String({ description: 'The address of the agent; empty for an agent that leases its requests.' }),
      registered_by: Type.String({ description: 'The ClientID of the owner; empty if there is none.' }),
      registered_at: Type.String({ description: 'The time of the registration, ISO 8601.' }),
      last_seen: Type.String({ description: 'The last registration or heartbeat, ISO 8601.' }),
      expires_at: EXPIRES_AT,
      is_alive: Type.Boolean({ description: 'False if the agent has expired: it will be removed, or is `offline`.' }),
      in_flight: IN_FLIGHT,
      offline: Type.Boolean({
        description:
          'True while an agent with an inbox sends no heartbeats: it stays registered, and its requests wait.',
      }),
      durable: Type.Boolean({ description: 'True if the answers and events of its calls are kept.' }),
      inbox: Type.Optional(
        Type.Enum(['pull', 'offline'], {
          description: 'pull: the agent leases all its requests. offline: requests wait while it cannot be reached.',
        }),
      ),
      probe: Type.Optional(
        Type.Object(
          {
            status: Type.Enum(['ok', 'failing']),
            last_probe: Type.String({ description: 'The time of the last probe, ISO 8601.' }),
            error: Type.Optional(Type.String({ description: 'The reason why the card could not be read or used.' })),
          },
          { description: 'The last probe of the card that the agent serves; absent for agents with heartbeats.' },
        ),
      ),
      instances: Type.Optional(
        Type.Array(
          Type.Object({
            instance_id: Type.String(),
            url: Type.String(),
            registered_at: Type.String({ description: 'The time of the first registration, ISO 8601.' }),
            last_seen: Type.String({ description: 'The last registration or heartbeat, ISO 8601.' }),
            expires_at: EXPIRES_AT,
            is_alive: Type.Boolean({ description: 'False if the instance has expired and will be removed.' }),
            in_flight: IN_FLIGHT,
          }),
          { description: 'The instances of the agent; absent if it was registered without instances.' },
        ),
      ),
    }),
  ),
  async run(query, { services }) {
    const agents = (await services.agents?.list()) ?? []
    const page = pageOf(agents, ({ agent_id }) => agent_id, query)
    return { ...page, items: page.items.map(shownAgent) }
  },
})

const agentCardRoute = defineManagementRoute({
  name: '/api/agent_card',
  summary: 'The card of a registered agent, as its owner registered it.',
  input: Type.Object(
    { agent_id: Type.String({ description: 'The id of the agent.', minLength: 1, maxLength: 128 }) },
    STRICT,
  ),
  output: Type.Object({
    agent_id: Type.String(),
    card: Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      additionalProperties: true,
      description: 'The card, including fields that the registry does not know.',
    }),
  }),
  async run({ agent_id }, { services }) {
    const card = await services.agents?.card?.(agent_id)
    if (card !== undefined) return { agent_id, card: { ...card } }
    throw new ManagementError(
      'AGENT_NOT_FOUND',
      `no agent ${JSON.stringify(agent_id)} is registered; /api/agents lists the agents`,
      { agent_id },
    )
  },
})

const deregisterAgent = defineAction({
  name: 'deregister_agent',
  summary: 'Removes an agent from the registry, even if another caller owns it.',
  input: Type.Object(
    {
      agent_id: Type.String({ description: 'The id of the agent.', minLength: 1, maxLength: 128 }),
      instance_id: Type.Optional(
        Type.String({
          description: 'The instance to remove; without it the agent is removed with all its instances.',
          minLength: 1,
          maxLength: 128,
        }),
      ),
    },
    STRICT,
  ),
  output: Type.Object({ agent_id: Type.String() }),
  target: ({ agent_id }) => ({ agent: agent_id }),
  async run({ agent_id, instance_id }, { services, operator }) {
    const gone = await services.agents?.deregister(agent_id, operator, instance_id)
    if (gone !== true) {
      throw agentNotFound(
        agent_id,
        instance_id === undefined ? '' : ` with the instance ${JSON.stringify(instance_id)}`,
      )
    }
    return { agent_id }
  },
})

const callAgent = defineAction({
  name: 'call_agent',
  summary:
    "Sends a text message to an agent in the name of the operator, whose role decides instead of the policy, and answers with the agent's events as they come, as GET /a2a/{agent_id}/stream does. The call ends after 170 s, or when the client disconnects.",
  input: Type.Object(
    {
      agent_id: Type.String({ description: 'The id of the agent.', minLength: 1, maxLength: 128 }),
      message: argument.text('The text of the message.'),
      context_id: Type.Optional(
        Type.String({
          description: 'The contextId of the conversation that the message continues; without it a new one begins.',
          minLength: 1,
          maxLength: 256,
        }),
      ),
      timeout_seconds: argument.timeoutSeconds('the beginning of the answer', 30),
    },
    STRICT,
  ),
  output: Type.String({
    description:
      'Server-sent events: `task.status`, `task.artifact`, `message`; the last one is `task.done` or `task.error`. Their data is JSON: `stream_id`, `type`, `payload`.',
  }),
  answersEvents: true,
  target: ({ agent_id }) => ({ agent: agent_id }),
  async run({ agent_id: agentId, message, context_id: contextId, timeout_seconds: seconds = 30 }, call) {
    const { hold, services, operator, signal, maxWaitMs } = call
    call.becomeStream()
    const answer = await services.agentCalls?.open({
      agentId,
      operator,
      text: message,
      contextId,
      timeoutMs: Math.min(seconds * 1000, maxWaitMs),
      signal: AbortSignal.any([signal, AbortSignal.timeout(maxWaitMs)]),
      hold,
    })
    if (answer === undefined) throw agentNotFound(agentId)
    if ('rpcCode' in answer) {
      const { message: reason, rpcCode } = answer
      throw new ManagementError('AGENT_CALL_FAILED', reason, { agent_id: agentId, json_rpc_code: rpcCode })
    }
    call.answerWith(answer)
    return answer.id
  },
  detail: (id) => `stream ${id} opened`,
})

function agentNotFound(agentId: string, instance = ''): ManagementError {
  return new ManagementError(
    'AGENT_NOT_FOUND',
    `no agent ${JSON.stringify(agentId)}${instance} is registered; /api/agents lists the agents`,
    { agent_id: agentId },
  )
}

export const agentOperations: readonly Operation[] = [agentsRoute, agentCardRoute, deregisterAgent, callAgent]
