import { PatternIndex } from './pattern-index.ts'

interface Departure {
  /** When the last of them left, milliseconds since the epoch. */
  at: number
  /** Which departure it was. */
  number: number
}

/**
 * When subscribers by wildcard left, by their patterns: to note it with each channel that they covered would take as long as
 * there are channels. Whoever wants to know asks for one channel.
 */
export class Departures {
  #byPattern = new Map<string, Departure>()
  #index = new PatternIndex<Departure>()
  /** Channels that came to be meanwhile, with the last departure before them. */
  #born = new Map<string, number>()
  #count = 0

  /** How much is kept; {@link clear} it now and then. */
  get size(): number {
    return this.#byPattern.size + this.#born.size
  }

  left(pattern: string, at: number): void {
    const number = ++this.#count
    const known = this.#byPattern.get(pattern)
    if (known) {
      known.at = at
      known.number = number
      return
    }
    const departure = { at, number }
    this.#byPattern.set(pattern, departure)
    this.#index.add(pattern, departure)
  }

  appeared(channel: string): void {
    if (this.#byPattern.size > 0) this.#born.set(channel, this.#count)
  }

  /** When the last one left that covered the channel, since {@link clear}; 0 for never. */
  lastFrom(channel: string): number {
    if (this.#byPattern.size === 0) return 0
    const born = this.#born.get(channel) ?? 0
    let last = 0
    for (const { at, number } of this.#index.matching(channel)) if (number > born && at > last) last = at
    return last
  }

  clear(): void {
    this.#byPattern = new Map()
    this.#index = new PatternIndex()
    this.#born = new Map()
  }
}
