/** What one node counted for one channel since it started. */
export interface Figures {
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

export function noFigures(): Figures {
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

export function addFigures(into: Figures, more: Figures): void {
  for (const name of SUMS) into[name] += more[name]
  for (const name of GAUGES) into[name] += more[name]
  into.lastActivity = Math.max(into.lastActivity, more.lastActivity)
}

/** Two records of one node's counting: the later one, field by field. Gauges are those of the second. */
export function laterFigures(stored: Figures, live: Figures): Figures {
  const later = { ...live, lastActivity: Math.max(stored.lastActivity, live.lastActivity) }
  for (const name of SUMS) later[name] = Math.max(stored[name], live[name])
  return later
}

/** Figures from JSON; what is missing or no count is 0. */
export function figuresFrom(value: unknown): Figures {
  const figures = noFigures()
  if (typeof value !== 'object' || value === null) return figures
  const given = new Map<string, unknown>(Object.entries(value))
  for (const name of [...SUMS, ...GAUGES, 'lastActivity'] as const) {
    const number = given.get(name)
    if (typeof number === 'number' && Number.isSafeInteger(number) && number > 0) figures[name] = number
  }
  return figures
}

/** What this node counted, by the keys of channels. */
export class FigureTable {
  readonly #figures = new Map<string, Figures>()
  /** Changed since the peers were told, and since they were stored. */
  readonly untold = new Set<string>()
  readonly unstored = new Set<string>()

  get(key: string): Figures | undefined {
    return this.#figures.get(key)
  }

  keys(): Iterable<string> {
    return this.#figures.keys()
  }

  change(key: string, apply: (figures: Figures) => void): void {
    let figures = this.#figures.get(key)
    if (!figures) this.#figures.set(key, (figures = noFigures()))
    apply(figures)
    this.untold.add(key)
    this.unstored.add(key)
  }

  /** Messages were accepted. */
  received(key: string, count: number, bytes: number): void {
    this.change(key, (figures) => {
      figures.incoming += count
      figures.incomingBytes += bytes
      figures.lastActivity = Date.now()
    })
  }

  /** Messages were handed to somebody. */
  delivered(key: string, count: number, bytes: number): void {
    this.change(key, (figures) => {
      figures.outgoing += count
      figures.outgoingBytes += bytes
      figures.lastActivity = Date.now()
    })
  }

  /** A subscriber came, or went: activity either way. */
  subscribers(key: string, change: 1 | -1): void {
    this.change(key, (figures) => {
      figures.subscribers += change
      figures.lastActivity = Date.now()
    })
  }

  forget(key: string): void {
    this.#figures.delete(key)
    this.untold.delete(key)
    this.unstored.delete(key)
  }
}
