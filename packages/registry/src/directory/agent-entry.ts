import type { AgentCard, StoredCard } from '../card/agent-card.ts'
import type { AgentRecord } from '../discovery/discovery-entry.ts'

/** A registered agent as this node knows it. */
export class AgentEntry {
  readonly record: AgentRecord
  /** The sequence of the agent's last entry in the discovery log. */
  readonly sequence: number
  /** By {@link clockOf}: the last time when this node heard of the agent, or of each of its instances. */
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

  /** Returns the last time when this node heard of the owner of a clock; undefined for another agent's clock. */
  heardMs(clock: string): number | undefined {
    return this.#heard.get(clock)
  }

  get lastSeenMs(): number {
    return Math.max(this.record.lastSeenMs, ...this.#heard.values())
  }

  /** `true` when this node heard of the agent, or of an instance, after the last entry of the log. */
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

  get card(): AgentCard {
    const { record } = this
    this.#shown ??= {
      ...record.card,
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
