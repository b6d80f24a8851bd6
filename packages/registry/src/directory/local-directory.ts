import type { StoredCard } from '../card/agent-card.ts'
import type { AgentFilter } from '../options.ts'
import type { AgentEntry } from './agent-entry.ts'
import { SortedIds } from './sorted-ids.ts'

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
