import type { ClientContext, ErrorListener, Running } from '../client-context.ts'
import { callSignal } from '../client-context.ts'
import { isObject, parsed, asString } from '../cloud-event.ts'
import type { Duration } from '../time.ts'
import { milliseconds, pause } from '../time.ts'
import type { WorkerPool } from '../work/worker-pool.ts'
import { Agent } from './agent.ts'
import { registryFailure } from './agent-failure.ts'
import type { AgentHandler, AgentWorkOptions } from './agent-work.ts'
import { workForAgent } from './agent-work.ts'
import { isCode, registryCall } from './registry-calls.ts'

/** The agents of the server: `agents('echo').send('hi')` calls one. */
export interface Agents {
  (id: string): Agent
  /** Registers an agent, and keeps it registered until it is closed. */
  serve(options: ServeAgentOptions): Promise<ServedAgent>
  /**
   * Works on the requests of a pull agent: leases them, renews the leases, and sends what the handler yields or returns.
   * The agent stays registered when the pool ends, so that requests wait for the next one.
   */
  work(id: string, handler: AgentHandler, options?: AgentWorkOptions): WorkerPool
  /** Returns the cards of all agents, or of those with one of the tags among their skills. */
  list(options?: {
    readonly skillTags?: readonly string[] | undefined
    readonly signal?: AbortSignal | undefined
  }): Promise<readonly Readonly<Record<string, unknown>>[]>
}

export function agentsOf(context: ClientContext): Agents {
  return Object.assign((id: string) => new Agent(context, id), {
    serve: (options: ServeAgentOptions) => ServedAgent.start(context, options),
    work: (id: string, handler: AgentHandler, options: AgentWorkOptions = {}) =>
      workForAgent(context, id, handler, options),
    async list({
      skillTags,
      signal,
    }: { skillTags?: readonly string[] | undefined; signal?: AbortSignal | undefined } = {}) {
      const cards: Readonly<Record<string, unknown>>[] = []
      for (let cursor: string | undefined; ; cursor = asString(cards.at(-1)?.['agent_id'])) {
        const answer = await context.transport.call(
          {
            method: 'GET',
            path: '/agents',
            query: { cursor, skill_tags: skillTags?.join(',') },
            repeatable: true,
            signal: callSignal(context, signal),
          },
          registryFailure,
        )
        const page = parsed(answer.text)
        cards.push(...(Array.isArray(page) ? page.filter(isObject) : []))
        // The next page begins after the last agent of this one.
        if (!/rel="next"/.test(answer.headers.get('link') ?? '')) return cards
      }
    },
  })
}

export interface ServeAgentOptions {
  /** 2 to 128 characters: lower-case letters, digits, and hyphens inside. */
  readonly id: string
  /** The address at which the server reaches the agent. */
  readonly url: string
  /**
   * The name of this server among several of the same agent, such as the name of its pod: 1 to 128 letters, digits,
   * `.`, `_` and `-`. @default the agent has this server only
   */
  readonly instance?: string | undefined
  /** Further members of the agent card. `name` is the id by default. */
  readonly card?: Readonly<Record<string, unknown>> | undefined
  /** The time between heartbeats, below the server's time-to-live of 300 s. @default '60s' */
  readonly heartbeat?: Duration | undefined
  /** Removes the registration. */
  readonly signal?: AbortSignal | undefined
  /** Receives errors of heartbeats, which are sent again. @default the client's */
  readonly onError?: ErrorListener | undefined
}

/**
 * A registration that is kept alive: with heartbeats, and by registering again if the server lost it. It never touches
 * the registrations of other servers of the same agent.
 */
export class ServedAgent implements Running, AsyncDisposable {
  readonly id: string
  /** Resolves when the registration was removed, or the agent belongs to another caller. */
  readonly closed: Promise<void>
  readonly #context: ClientContext
  readonly #card: object
  readonly #instance: string | undefined
  /** The parts that distinguish the registration from those of other servers. */
  readonly #name: object
  readonly #stop = new AbortController()

  private constructor(context: ClientContext, options: ServeAgentOptions) {
    const { id, url, instance, signal } = options
    this.id = id
    this.#context = context
    this.#card = cardOf(options)
    this.#instance = instance
    this.#name = { agent_id: id, url, instance_id: instance }
    const heartbeatMs = milliseconds('heartbeat', options.heartbeat ?? '60s')
    const stop = (): void => this.#stop.abort()
    signal?.addEventListener('abort', stop, { once: true })
    context.running.add(this)
    this.closed = this.#beat(heartbeatMs, options.onError ?? context.onError).finally(() => {
      signal?.removeEventListener('abort', stop)
      context.running.delete(this)
    })
  }

  /** Registers the agent. @throws SignalboxError CARD_INVALID, AGENT_OWNED and others */
  static async start(context: ClientContext, options: ServeAgentOptions): Promise<ServedAgent> {
    milliseconds('heartbeat', options.heartbeat ?? '60s')
    options.signal?.throwIfAborted()
    await registryCall(context, 'register', cardOf(options))
    return new ServedAgent(context, options)
  }

  /** Removes the registration. Idempotent. */
  async close(): Promise<void> {
    this.#stop.abort()
    await this.closed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Sends heartbeats until the agent is closed, and then removes the registration. Never rejects. */
  async #beat(heartbeatMs: number, onError: ErrorListener): Promise<void> {
    const { signal } = this.#stop
    for (;;) {
      await pause(heartbeatMs, signal)
      if (signal.aborted) break
      try {
        await registryCall(this.#context, 'heartbeat', this.#name, { signal }).catch((error: unknown) => {
          // Without an instance, another server has replaced this one.
          const isLost = this.#instance !== undefined && isCode(error, 'INSTANCE_NOT_FOUND')
          if (!isLost && !isCode(error, 'AGENT_NOT_FOUND')) throw error
          return registryCall(this.#context, 'register', this.#card, { signal })
        })
      } catch (error) {
        if (signal.aborted) break
        onError(error)
        if (isCode(error, 'AGENT_OWNED')) return
      }
    }
    try {
      await registryCall(this.#context, 'deregister', this.#name)
    } catch (error) {
      if (!isCode(error, 'AGENT_NOT_FOUND') && !isCode(error, 'INSTANCE_NOT_FOUND')) onError(error)
    }
  }
}

function cardOf({ id, url, card, instance }: ServeAgentOptions): object {
  return { name: id, ...card, agent_id: id, url, instance_id: instance }
}
