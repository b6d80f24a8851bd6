/** Counts of one channel on one node since the node started. */
export interface ChannelCounts {
  incoming: number
  incomingBytes: number
  outgoing: number
  outgoingBytes: number
  deadLettered: number
  expired: number
  /** Milliseconds since the epoch; 0 for never. */
  lastActivity: number
  /** Now, not since the start. */
  leased: number
  /** Now, not since the start. */
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
    subscribers: 0,
  }
}

const SUMS = ['incoming', 'incomingBytes', 'outgoing', 'outgoingBytes', 'deadLettered', 'expired'] as const
const GAUGES = ['leased', 'subscribers'] as const

export function addCounts(into: ChannelCounts, more: ChannelCounts): void {
  for (const name of SUMS) into[name] += more[name]
  for (const name of GAUGES) into[name] += more[name]
  into.lastActivity = Math.max(into.lastActivity, more.lastActivity)
}

/** Two records of one node's counting: the later one, field by field. Gauges are those of the second. */
export function laterCounts(stored: ChannelCounts, live: ChannelCounts): ChannelCounts {
  const later = { ...live, lastActivity: Math.max(stored.lastActivity, live.lastActivity) }
  for (const name of SUMS) later[name] = Math.max(stored[name], live[name])
  return later
}

/** Reads counts from JSON; what is missing or not a count is 0. */
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
  /** Keys whose counts changed since they were published to the peers, and since they were stored. */
  readonly unpublished = new Set<string>()
  readonly unstored = new Set<string>()

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

  /** Messages were accepted. */
  received(key: string, count: number, bytes: number): void {
    this.change(key, (counts) => {
      counts.incoming += count
      counts.incomingBytes += bytes
      counts.lastActivity = Date.now()
    })
  }

  /** Messages were handed to somebody. */
  delivered(key: string, count: number, bytes: number): void {
    this.change(key, (counts) => {
      counts.outgoing += count
      counts.outgoingBytes += bytes
      counts.lastActivity = Date.now()
    })
  }

  /** A subscriber came, or went: activity either way. */
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
