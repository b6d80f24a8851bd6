/** The counts of one channel on one node since the node started. */
export interface ChannelCounts {
  incoming: number
  incomingBytes: number
  outgoing: number
  outgoingBytes: number
  deadLettered: number
  expired: number
  /** Milliseconds since the epoch; 0 means never. */
  lastActivity: number
  /** A current value, not a sum since the start. */
  leased: number
  /** Messages that wait for their next attempt. A current value, not a sum since the start. */
  retrying: number
  /** A current value, not a sum since the start. */
  subscribers: number
}

export function noCounts(): ChannelCounts {
  return {
    incoming: 0,
    incomingBytes: 0,
    outgoing: 0,
    outgoingBytes: 0,
    deadLettered: 0,
    expired: 0,
    lastActivity: 0,
    leased: 0,
    retrying: 0,
    subscribers: 0,
  }
}

const SUMS = ['incoming', 'incomingBytes', 'outgoing', 'outgoingBytes', 'deadLettered', 'expired'] as const
const GAUGES = ['leased', 'retrying', 'subscribers'] as const

export function addCounts(into: ChannelCounts, more: ChannelCounts): void {
  for (const name of SUMS) into[name] += more[name]
  for (const name of GAUGES) into[name] += more[name]
  into.lastActivity = Math.max(into.lastActivity, more.lastActivity)
}

/**
 * Merges two records of one node's counts: the larger sum of each field, and the current values of the
 * second record.
 */
export function laterCounts(stored: ChannelCounts, live: ChannelCounts): ChannelCounts {
  const later = { ...live, lastActivity: Math.max(stored.lastActivity, live.lastActivity) }
  for (const name of SUMS) later[name] = Math.max(stored[name], live[name])
  return later
}

/** Reads counts from JSON; a missing or invalid field is 0. */
export function countsFrom(value: unknown): ChannelCounts {
  const counts = noCounts()
  if (typeof value !== 'object' || value === null) return counts
  const given = new Map<string, unknown>(Object.entries(value))
  for (const name of [...SUMS, ...GAUGES, 'lastActivity'] as const) {
    const number = given.get(name)
    if (typeof number === 'number' && Number.isSafeInteger(number) && number > 0) counts[name] = number
  }
  return counts
}

/** The counts of this node, by the keys of channels. */
export class CounterTable {
  readonly #counts = new Map<string, ChannelCounts>()
  /**
   * The keys whose counts changed since they were last published to other nodes, and since they were last
   * stored.
   */
  readonly unpublished = new Set<string>()
  readonly unstored = new Set<string>()

  /** The counters of all queues since the start, also of queues that were deleted. */
  readonly sinceOpen = { deadLettered: 0, redelivered: 0, expired: 0, retried: 0 }

  get(key: string): ChannelCounts | undefined {
    return this.#counts.get(key)
  }

  keys(): Iterable<string> {
    return this.#counts.keys()
  }

  change(key: string, apply: (counts: ChannelCounts) => void): void {
    let counts = this.#counts.get(key)
    if (!counts) this.#counts.set(key, (counts = noCounts()))
    apply(counts)
    this.unpublished.add(key)
    this.unstored.add(key)
  }

  /** Counts accepted messages. */
  received(key: string, count: number, bytes: number): void {
    this.change(key, (counts) => {
      counts.incoming += count
      counts.incomingBytes += bytes
      counts.lastActivity = Date.now()
    })
  }

  /** Counts delivered messages. */
  delivered(key: string, count: number, bytes: number): void {
    this.change(key, (counts) => {
      counts.outgoing += count
      counts.outgoingBytes += bytes
      counts.lastActivity = Date.now()
    })
  }

  /** Counts a message that moved to its dead-letter queue. */
  deadLettered(key: string): void {
    this.sinceOpen.deadLettered++
    this.change(key, (counts) => counts.deadLettered++)
  }

  /** Counts expired messages. */
  expired(key: string, count: number): void {
    this.sinceOpen.expired += count
    this.change(key, (counts) => (counts.expired += count))
  }

  /** Counts a subscriber that came (1) or left (-1); both are activity. */
  subscribers(key: string, change: 1 | -1): void {
    this.change(key, (counts) => {
      counts.subscribers += change
      counts.lastActivity = Date.now()
    })
  }

  forget(key: string): void {
    this.#counts.delete(key)
    this.unpublished.delete(key)
    this.unstored.delete(key)
  }
}
