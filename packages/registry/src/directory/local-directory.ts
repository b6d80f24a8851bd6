import type { AgentFilter } from '@signalbox/broker-core/ports'

import type { AgentCard, StoredCard } from '../card/agent-card.ts'
import { isPull } from '../card/agent-options.ts'
import type { AgentRecord } from '../discovery/discovery-entry.ts'

/**
 * The agents that this node knows, indexed by id, in order, and by the tags of their skills. No operation
 * scans all agents.
 */
export class LocalDirectory {
  readonly #entries = new Map<string, AgentEntry>()
  readonly #ids = new SortedIds()
  readonly #byTag = new Map<string, SortedIds>()

  get size(): number {
    return this.#entries.size
  }

  get(agentId: string): AgentEntry | undefined {
    return this.#entries.get(agentId)
  }

  has(agentId: string): boolean {
    return this.#entries.has(agentId)
  }

  ids(): readonly string[] {
    return this.#ids.first()
  }

  set(agentId: string, entry: AgentEntry): void {
    const before = this.#entries.get(agentId)
    this.#entries.set(agentId, entry)
    if (before?.stored === entry.stored) return
    if (before === undefined) this.#ids.add(agentId)
    else this.#removeTags(agentId, before.stored)
    for (const tag of tagsOf(entry.stored)) {
      let tagged = this.#byTag.get(tag)
      if (tagged === undefined) this.#byTag.set(tag, (tagged = new SortedIds()))
      tagged.add(agentId)
    }
  }

  /** Returns false when the agent was not in the directory. */
  delete(agentId: string): boolean {
    const entry = this.#entries.get(agentId)
    if (entry === undefined) return false
    this.#entries.delete(agentId)
    this.#ids.delete(agentId)
    this.#removeTags(agentId, entry.stored)
    return true
  }

  /** Lists agents, ordered by agent_id. */
  list({ skillTags = [], limit, after }: AgentFilter): readonly AgentEntry[] {
    const found: AgentEntry[] = []
    for (const id of this.#idsWith(skillTags, limit, after)) {
      const entry = this.#entries.get(id)
      if (entry !== undefined) found.push(entry)
    }
    return found
  }

  #idsWith(tags: readonly string[], limit: number | undefined, after: string | undefined): readonly string[] {
    const [only, ...more] = tags
    if (only === undefined) return this.#ids.first(limit, after)
    if (more.length === 0) return this.#byTag.get(only)?.first(limit, after) ?? []
    const found = new Set<string>()
    for (const tag of tags) {
      // The result has at most `limit` ids, so no tag needs to contribute more.
      for (const id of this.#byTag.get(tag)?.first(limit, after) ?? []) found.add(id)
    }
    return [...found].sort().slice(0, limit)
  }

  #removeTags(agentId: string, card: StoredCard): void {
    for (const tag of tagsOf(card)) {
      const tagged = this.#byTag.get(tag)
      tagged?.delete(agentId)
      if (tagged?.size === 0) this.#byTag.delete(tag)
    }
  }
}

function tagsOf({ skills = [] }: StoredCard): ReadonlySet<string> {
  return new Set(skills.flatMap(({ tags = [] }) => tags))
}

/** A registered agent as this node knows it. */
export class AgentEntry {
  readonly record: AgentRecord
  /** The sequence of the agent's last entry in the discovery log. */
  readonly sequence: number
  /** By {@link clockOf}: the time of the last heartbeat of the agent, or of each of its instances. */
  readonly #heard: Map<string, number>
  #shown: AgentCard | undefined

  /** @param before The previous entry, whose times may be newer than those of the log. */
  constructor(record: AgentRecord, sequence: number, before?: AgentEntry) {
    this.record = record
    this.sequence = sequence
    this.#heard = new Map(record.instances.map(({ instance_id: id, seenMs }) => [clockOf(record, id), seenMs]))
    if (this.#heard.size === 0) this.#heard.set(clockOf(record), record.lastSeenMs)
    for (const [clock, ms] of this.#heard) this.#heard.set(clock, Math.max(ms, before?.heardMs(clock) ?? 0))
  }

  get stored(): StoredCard {
    return this.record.card
  }

  /** The clocks that decide when the agent, or one of its instances, expires. */
  get clocks(): Iterable<string> {
    return this.#heard.keys()
  }

  /** Returns the time of the last heartbeat of a clock's owner; undefined for another agent's clock. */
  heardMs(clock: string): number | undefined {
    return this.#heard.get(clock)
  }

  get lastSeenMs(): number {
    return Math.max(this.record.lastSeenMs, ...this.#heard.values())
  }

  /** `true` if a heartbeat of the agent, or of an instance, is newer than the last entry of the log. */
  get ahead(): boolean {
    const { record } = this
    if (record.instances.length === 0) return this.lastSeenMs > record.lastSeenMs
    return record.instances.some(({ instance_id: id, seenMs }) => (this.heardMs(clockOf(record, id)) ?? 0) > seenMs)
  }

  /** Records that the owner of a clock was alive at this time. An earlier time changes nothing. */
  seen(nowMs: number, clock: string): void {
    const before = this.#heard.get(clock)
    if (before === undefined || nowMs <= before) return
    this.#heard.set(clock, nowMs)
    this.#shown = undefined
  }

  /** `true` if the agent has expired, and stays registered because it has an inbox. */
  get parked(): boolean {
    return this.record.parkedMs !== undefined
  }

  /** The card as callers see it. */
  get card(): AgentCard {
    const { record } = this
    this.#shown ??= {
      ...shownFields(record.card),
      ...(this.parked ? { offline: true as const } : {}),
      last_seen: iso(this.lastSeenMs),
      ...(record.instances.length === 0
        ? {}
        : {
            instances: record.instances.map(({ instance_id, url, registered_at, seenMs }) => {
              const last_seen = iso(this.heardMs(clockOf(record, instance_id)) ?? seenMs)
              return { instance_id, url, registered_at, last_seen }
            }),
          }),
    }
    return this.#shown
  }
}

/** Removes the url of a pull agent, which is no address. */
function shownFields(card: StoredCard) {
  if (!isPull(card)) return card
  const { url: _none, ...fields } = card
  return fields
}

/** Neither an agent_id nor an instance_id has a blank. */
const BETWEEN = ' '

/** Returns the name of the clock of an agent, or of one of its instances. */
export function clockOf({ card: { agent_id } }: Pick<AgentRecord, 'card'>, instanceId?: string): string {
  return instanceId === undefined ? agent_id : agent_id + BETWEEN + instanceId
}

/** Returns the owner of a clock. */
export function ownerOf(clock: string): { readonly agentId: string; readonly instanceId: string | undefined } {
  const [agentId = '', instanceId] = clock.split(BETWEEN)
  return { agentId, instanceId }
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}

/** Distinct ids in order, maintained by binary insertion. */
class SortedIds {
  readonly #ids: string[] = []

  get size(): number {
    return this.#ids.length
  }

  add(id: string): void {
    const at = this.#placeOf(id)
    if (this.#ids[at] !== id) this.#ids.splice(at, 0, id)
  }

  delete(id: string): void {
    const at = this.#placeOf(id)
    if (this.#ids[at] === id) this.#ids.splice(at, 1)
  }

  /** Returns the first `limit` ids after a given id; without a limit, all of them. */
  first(limit?: number, after?: string): readonly string[] {
    const from = after === undefined ? 0 : this.#placeAfter(after)
    return this.#ids.slice(from, limit === undefined ? undefined : from + limit)
  }

  #placeAfter(id: string): number {
    const at = this.#placeOf(id)
    return this.#ids[at] === id ? at + 1 : at
  }

  /** Returns the index of the id, or the index at which it would be inserted. */
  #placeOf(id: string): number {
    let low = 0
    let high = this.#ids.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const other = this.#ids[middle]
      if (other !== undefined && other < id) low = middle + 1
      else high = middle
    }
    return low
  }
}
