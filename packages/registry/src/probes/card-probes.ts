import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'

import { isJsonObject } from '@signalbox/http-kit/internal'
import type { OutboundConnections } from '@signalbox/http-kit/internal'

import { agentUrl } from '../agent-addresses.ts'
import type { AgentWrites } from '../agent-writes.ts'
import type { StoredCard } from '../card/agent-card.ts'
import { agentOptions } from '../card/agent-options.ts'
import type { AddressCheck } from '../card/validate-card.ts'
import { validateCard } from '../card/validate-card.ts'
import type { CardMemory } from '../directory/agent-limits.ts'
import { DelayQueue } from '../directory/liveness.ts'
import type { AgentRecord, ProbeResult } from '../discovery/discovery-entry.ts'
import { recordEntry, storedForm } from '../discovery/discovery-entry.ts'
import { RegistryError } from '../errors.ts'
import { CardFetchError, fetchCard, registrationOf } from './served-card.ts'

/** The number of probes in each TTL. */
const PROBES_PER_TTL = 3

/** The interval of probes while agents do not expire, in ms: that of the default TTL. */
const INTERVAL_WITHOUT_TTL_MS = 100_000

/** The probes that a node has under way at the same time. */
const MAX_AT_ONCE = 32

/** The most characters of a failure that are stored. */
const MAX_ERROR = 512

/** Thrown instead of a write: the agent has left, or is registered in another way. */
class NotProbed extends Error {
  override readonly name = 'NotProbed'
}

interface ProbeParts {
  readonly ttlMs: number
  readonly connections: OutboundConnections
  readonly writes: AgentWrites
  readonly cards: CardMemory
  readonly recordOf: (agentId: string) => AgentRecord | undefined
  readonly checkAddress: (account: string) => AddressCheck
  readonly failed: (error: unknown) => void
}

/**
 * Reads the cards of agents with `a2a.liveness: "probe"`, three times in each TTL, and follows their changes. The node
 * that probed last probes again; the result is an entry of the discovery log, so the other nodes know that it lives. They
 * take over when a probe is late by half an interval. Two that take over at the same time probe once too often.
 */
export class CardProbes {
  /** The name of this node, for the length of its run. */
  readonly node: string = randomUUID()
  readonly #parts: ProbeParts
  /** The agents that this node probed last. */
  readonly #own: DelayQueue
  /** The agents of other nodes. */
  readonly #others: DelayQueue
  /** The ETag of the registered card, by agent_id; only while this node probes the agent. */
  readonly #etags = new Map<string, string>()
  readonly #waiting: string[] = []
  readonly #closed = new AbortController()
  #active = 0

  constructor(parts: ProbeParts) {
    this.#parts = parts
    const intervalMs = parts.ttlMs === 0 ? INTERVAL_WITHOUT_TTL_MS : parts.ttlMs / PROBES_PER_TTL
    const due = (agentIds: readonly string[]): void => {
      this.#waiting.push(...agentIds)
      this.#next()
    }
    this.#own = new DelayQueue(intervalMs, due)
    this.#others = new DelayQueue(intervalMs * 1.5, due)
  }

  /** Returns the first result of an agent that registers, if its card is probed. */
  begin(card: StoredCard, nowMs: number): ProbeResult | undefined {
    return agentOptions(card).liveness === 'probe' ? { atMs: nowMs, node: this.node } : undefined
  }

  /** Plans the next probe after an entry of the log. */
  applied({ card, probe }: AgentRecord, before: AgentRecord | undefined): void {
    const { agent_id: agentId } = card
    if (agentOptions(card).liveness !== 'probe') {
      this.removed(agentId)
      return
    }
    // A heartbeat postpones no probe: the card may have changed. An older node's heartbeat drops the result.
    if (before?.probe?.atMs === probe?.atMs && (this.#own.has(agentId) || this.#others.has(agentId))) return
    const own = probe?.node === this.node
    if (!own) this.#etags.delete(agentId)
    ;(own ? this.#others : this.#own).delete(agentId)
    ;(own ? this.#own : this.#others).touch(agentId)
  }

  removed(agentId: string): void {
    this.#etags.delete(agentId)
    this.#own.delete(agentId)
    this.#others.delete(agentId)
  }

  close(): void {
    this.#closed.abort()
    this.#own.close()
    this.#others.close()
    this.#waiting.length = 0
  }

  #next(): void {
    while (this.#active < MAX_AT_ONCE) {
      const agentId = this.#waiting.shift()
      if (agentId === undefined) return
      this.#active++
      this.#probe(agentId)
        .catch((error: unknown) => {
          if (this.#closed.signal.aborted || error instanceof NotProbed) return
          // The store is not available; this node tries again.
          this.#own.touch(agentId)
          this.#parts.failed(error)
        })
        .finally(() => {
          this.#active--
          this.#next()
        })
    }
  }

  async #probe(agentId: string): Promise<void> {
    const record = this.#parts.recordOf(agentId)
    if (record === undefined || this.#closed.signal.aborted) return
    const atMs = Date.now()
    let card: StoredCard | undefined
    let error: string | undefined
    try {
      card = await this.#servedCard(record)
    } catch (thrown) {
      if (!(thrown instanceof CardFetchError || thrown instanceof RegistryError)) throw thrown
      error = thrown.message.slice(0, MAX_ERROR)
      this.#etags.delete(agentId)
    }
    if (this.#closed.signal.aborted) return
    await this.#write(agentId, record, card, { atMs, node: this.node, error })
  }

  /**
   * Reads the card that the agent serves; resolves with undefined if it has not changed.
   * @throws CardFetchError, RegistryError
   */
  async #servedCard({ card: known, account, sealed }: AgentRecord): Promise<StoredCard | undefined> {
    const { agent_id: agentId, agent_card_url: text, a2a, registered_by, registered_at } = known
    const url = typeof text === 'string' ? agentUrl(text) : undefined
    if (url === undefined) throw new CardFetchError('the registration has no agent_card_url')
    const { connections, checkAddress } = this.#parts
    const context = { connections, account, signal: this.#closed.signal }
    const served = await fetchCard(url, context, this.#etags.get(agentId))
    if (served === 'unchanged') return undefined
    const source = { url, agentId, options: isJsonObject(a2a) ? a2a : {} }
    const submitted = await validateCard(registrationOf(served.card, source), checkAddress(account))
    // The credentials are for the server that the owner chose, and not for any that its card names.
    if (sealed !== undefined && URL.parse(submitted.url)?.origin !== URL.parse(known.url)?.origin) {
      throw new CardFetchError(`its card names another origin, and it has credentials; register the agent again`)
    }
    if (served.etag !== undefined) this.#etags.set(agentId, served.etag)
    const card: StoredCard = { ...submitted, registered_by, registered_at }
    return isDeepStrictEqual(card, known) ? undefined : card
  }

  async #write(agentId: string, probed: AgentRecord, card: StoredCard | undefined, probe: ProbeResult): Promise<void> {
    const memory = this.#parts.cards.reserve(agentId)
    try {
      await this.#parts.writes.write(agentId, (record) => {
        if (record === undefined || record.revision !== probed.revision) throw new NotProbed()
        if (card !== undefined) memory.take(record.account, storedForm(card, record.instances))
        const alive =
          probe.error === undefined ? { lastSeenMs: Math.max(record.lastSeenMs, probe.atMs), parkedMs: undefined } : {}
        const changed = card === undefined ? {} : { card, revision: randomUUID() }
        return { entry: recordEntry({ ...record, ...alive, ...changed, probe }), written: undefined }
      })
    } catch (error) {
      this.#etags.delete(agentId)
      throw error
    } finally {
      memory.release()
    }
  }
}
