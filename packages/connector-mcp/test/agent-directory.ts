import type { BrokerHandle, RequestMessage } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'

import type { AgentCard, AgentDirectory, AgentPage, AgentReply } from '@signalbox/broker-core/ports'

/** A request to an agent: the envelope as it arrived, and its caller. */
export interface AgentRequest {
  readonly envelope: string
  readonly callerId: string
  /** The agent's time, in milliseconds; NaN when the caller set none. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

export interface AgentAnswer {
  /** @default 200 */
  readonly status?: number
  readonly body: string | Uint8Array
}

type Agent = (request: AgentRequest) => AgentAnswer | Promise<AgentAnswer>

/** GatewayTimeoutBuffer: the Query waits this much longer than the agent may take. */
export const GATEWAY_TIMEOUT_BUFFER_MS = 10_000
const DEFAULT_TIMEOUT_MS = 300_000
const MAX_TIMEOUT_MS = 3_600_000
const NOTHING = new Uint8Array()

/**
 * A small agent directory over the real broker: each agent answers Queries on its channel `_AGENTS_.agents/<agent_id>`
 * through the system handle, as the gateway's virtual subscribers do.
 */
export class TestAgentDirectory implements AgentDirectory {
  readonly #system: BrokerHandle
  readonly #cards = new Map<string, AgentCard>()
  /** The time each Query was given, in milliseconds, in the order of the requests. */
  readonly queryTimeouts: number[] = []

  constructor(system: BrokerHandle) {
    this.#system = system
  }

  async register(card: AgentCard, agent?: Agent): Promise<void> {
    this.#cards.set(card.agent_id, card)
    if (agent) await this.serve(card, agent)
  }

  /** Begins to take the requests of an agent that is registered. */
  async serve(card: AgentCard, agent: Agent): Promise<void> {
    await this.#system.queries.subscribe(channelOf(card.agent_id), {}, (request) => serve(agent, request))
  }

  async list({ skillTags, limit, after = '' }: AgentPage): Promise<readonly AgentCard[]> {
    const cards = [...this.#cards.values()].toSorted((a, b) => (a.agent_id < b.agent_id ? -1 : 1))
    const matching = cards.filter(
      ({ skills = [] }) => !skillTags || skills.some(({ tags = [] }) => tags.some((tag) => skillTags.includes(tag))),
    )
    return matching.filter(({ agent_id }) => agent_id > after).slice(0, limit)
  }

  async get(agentId: string): Promise<AgentCard | undefined> {
    return this.#cards.get(agentId)
  }

  async request(
    agentId: string,
    envelope: Uint8Array,
    { caller, timeoutMs, signal, callerGone, acceptOnly = false }: Parameters<AgentDirectory['request']>[2],
  ): Promise<AgentReply> {
    const agentMs = Math.min(timeoutMs ?? DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS)
    const waitMs = agentMs + GATEWAY_TIMEOUT_BUFFER_MS
    this.queryTimeouts.push(waitMs)
    const tags = {
      caller: caller.clientId,
      timeout_ms: String(timeoutMs ?? Number.NaN),
      accept_only: String(acceptOnly),
    }
    const reply = await this.#system.queries.send(
      channelOf(agentId),
      { body: envelope, tags },
      { timeoutMs: waitMs, ...(signal ? { signal } : {}), ...(callerGone ? { callerGone } : {}) },
    )
    return { executed: reply.executed, error: reply.error, status: Number(reply.tags['status'] ?? 0), body: reply.body }
  }
}

function channelOf(agentId: string): string {
  return `_AGENTS_.agents/${agentId}`
}

async function serve(agent: Agent, { body, tags, signal }: RequestMessage) {
  const timeoutMs = Number(tags['timeout_ms'])
  const asked = Promise.resolve(
    agent({ envelope: decodeText(body) ?? '', callerId: tags['caller'] ?? '', timeoutMs, signal }),
  ).catch((error: unknown) => ({
    status: 0,
    body: NOTHING,
    error: String(error instanceof Error ? error.message : error),
  }))
  if (tags['accept_only'] === 'true') return { body: NOTHING }
  const answer = await Promise.race([asked, deadline(timeoutMs)])
  if (answer === 'late') return { error: 'agent timeout' }
  if ('error' in answer) return { error: answer.error }
  const bytes = typeof answer.body === 'string' ? encodeText(answer.body) : answer.body
  return { body: bytes, tags: { status: String(answer.status ?? 200) } }
}

function deadline(timeoutMs: number): Promise<'late'> {
  return new Promise((resolve) => {
    if (!Number.isNaN(timeoutMs) && timeoutMs < 2 ** 31) setTimeout(() => resolve('late'), timeoutMs).unref()
  })
}

/** A directory with one agent, `echo`, which returns what it was sent as its result. */
export async function echoDirectory(system: BrokerHandle): Promise<TestAgentDirectory> {
  const directory = new TestAgentDirectory(system)
  await directory.register({ agent_id: 'echo', name: 'Echo', url: 'http://127.0.0.1/echo' }, ({ envelope }) => ({
    body: `{"jsonrpc":"2.0","id":1,"result":${envelope}}`,
  }))
  return directory
}
