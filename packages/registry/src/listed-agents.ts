import { isDeepStrictEqual } from 'node:util'

import type { JsonObject } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'

import type { AgentRegistry } from './agent-registry.ts'
import { isAgentId } from './card/agent-card.ts'
import type { RegistryCaller } from './options.ts'

/** The owner of listed agents. */
const OPERATOR: RegistryCaller = { clientId: 'agents-file' }

const MAX_AGENTS = 1_000

/** The registrations in progress at the same time. */
const AT_ONCE = 8

/** The time after which a registration that failed is tried again, in ms. */
const RETRY_MS = 10_000

/** The reports of {@link ListedAgents}, for the log. */
export interface ListedAgentEvents {
  registered(agentId: string): void
  /** An agent cannot be registered. Reported once for each reason. */
  refused(url: string, reason: string): void
  /** An agent that is not listed any more was not removed. */
  notRemoved(error: unknown): void
  failed(error: unknown): void
}

/**
 * Registers the agents that an operator lists by the URLs of their cards, and removes those that are not listed any
 * more. An agent that cannot be registered, or that has expired, is tried again.
 */
export class ListedAgents implements AsyncDisposable {
  readonly #registry: Pick<AgentRegistry, 'deregister' | 'list' | 'register'>
  readonly #events: ListedAgentEvents
  /** The entries that this node has registered, by URL. */
  readonly #done = new Map<string, JsonObject>()
  /** The last failure of each URL. */
  readonly #failures = new Map<string, string>()
  readonly #closed = new AbortController()
  readonly #timer: NodeJS.Timeout
  #entries: readonly JsonObject[]
  #running = Promise.resolve()

  /** @param entries As {@link readListedAgents} returns them */
  constructor(
    registry: Pick<AgentRegistry, 'deregister' | 'list' | 'register'>,
    entries: readonly JsonObject[],
    events: ListedAgentEvents,
    retryMs = RETRY_MS,
  ) {
    this.#registry = registry
    this.#events = events
    this.#entries = entries
    this.#syncNext()
    this.#timer = setInterval(() => this.#syncNext(), retryMs)
    this.#timer.unref()
  }

  /** Replaces the list. */
  replace(entries: readonly JsonObject[]): void {
    this.#entries = entries
    this.#syncNext()
  }

  #syncNext(): void {
    this.#running = this.#running
      .then(() => (this.#closed.signal.aborted ? undefined : this.#sync()))
      .catch((error: unknown) => this.#events.failed(error))
  }

  async #sync(): Promise<void> {
    const entries = this.#entries
    const wanted = new Set(entries.map(urlOf))
    const owned = this.#registry.list().filter(({ registered_by: owner }) => owner === OPERATOR.clientId)
    // A parked agent has expired.
    const known = new Set(owned.filter(({ offline }) => offline !== true).map(urlOf))
    for (const card of owned) {
      if (wanted.has(urlOf(card)) || this.#closed.signal.aborted) continue
      this.#done.delete(urlOf(card))
      await this.#registry.deregister(card.agent_id, OPERATOR).catch((error: unknown) => this.#events.notRemoved(error))
    }
    // Another node may have registered the agent; this one registers it again only after a change of its entry.
    const missing = entries.filter((entry) => {
      const before = this.#done.get(urlOf(entry))
      if (!known.has(urlOf(entry))) return true
      if (before === undefined) this.#done.set(urlOf(entry), entry)
      return before !== undefined && !isDeepStrictEqual(before, entry)
    })
    for (let at = 0; at < missing.length; at += AT_ONCE) {
      if (this.#closed.signal.aborted) return
      await Promise.all(missing.slice(at, at + AT_ONCE).map((entry) => this.#register(entry)))
    }
  }

  async #register(entry: JsonObject): Promise<void> {
    const url = urlOf(entry)
    try {
      const { agent_id: agentId } = await this.#registry.register(entry, OPERATOR)
      this.#done.set(url, entry)
      this.#failures.delete(url)
      this.#events.registered(agentId)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (this.#failures.get(url) !== reason && !this.#closed.signal.aborted) this.#events.refused(url, reason)
      this.#failures.set(url, reason)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort()
    clearInterval(this.#timer)
    await this.#running
  }
}

function urlOf({ agent_card_url: url }: JsonObject): string {
  return URL.parse(String(url))?.href ?? ''
}

/**
 * Returns the entries of a list of agents: objects with `agent_card_url`, and optionally `agent_id` and `a2a`.
 * @throws RangeError for a list that is not valid
 */
export function readListedAgents(value: unknown): readonly JsonObject[] {
  if (!Array.isArray(value) || value.length > MAX_AGENTS) {
    throw new RangeError(`it is not a list of at most ${MAX_AGENTS} agents`)
  }
  const entries = value.map((entry: unknown, index) => entryOf(entry, `agent ${index + 1}`))
  const urls = entries.map(urlOf)
  const twice = urls.find((url, index) => urls.indexOf(url) !== index)
  if (twice !== undefined) throw new RangeError(`the agent ${twice} is in it twice`)
  return entries
}

function entryOf(entry: unknown, name: string): JsonObject {
  if (!isJsonObject(entry)) throw new RangeError(`${name} is not an object with agent_card_url`)
  const { agent_card_url: url, agent_id: agentId, a2a, ...others } = entry
  if (typeof url !== 'string' || !/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    throw new RangeError(`${name}: agent_card_url is not an http or https URL`)
  }
  if (agentId !== undefined && !(typeof agentId === 'string' && isAgentId(agentId))) {
    throw new RangeError(`${name}: agent_id is not valid; allowed: 2 to 128 lower-case letters, digits and hyphens`)
  }
  if (a2a !== undefined && !isJsonObject(a2a)) throw new RangeError(`${name}: a2a is not an object`)
  const [other] = Object.keys(others)
  if (other !== undefined) throw new RangeError(`${name}: ${other} is unknown; allowed: agent_card_url, agent_id, a2a`)
  return entry
}
