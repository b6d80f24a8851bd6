import { usedShare } from './memory.ts'

/** The age up to which a measurement is reused, in ms. A measurement takes about 20 µs. */
const SAMPLE_MS = 250

/** Checks if memory use is above the watermark. */
export class MemoryWatermark {
  readonly #measure: () => number
  #percent: number
  #sampledAt = Number.NEGATIVE_INFINITY
  #exceeded = false

  /** @param percent The watermark in percent; 0 means no watermark */
  constructor(percent: number, measure: () => number = usedShare) {
    this.#percent = percent
    this.#measure = measure
  }

  set percent(percent: number) {
    this.#percent = percent
    this.#sampledAt = Number.NEGATIVE_INFINITY
  }

  get exceeded(): boolean {
    if (this.#percent === 0) return false
    const now = performance.now()
    if (now - this.#sampledAt >= SAMPLE_MS) {
      this.#sampledAt = now
      this.#exceeded = this.#measure() * 100 > this.#percent
    }
    return this.#exceeded
  }
}
