import { getHeapStatistics } from 'node:v8'

/** How old a measurement may be, in milliseconds: one takes some 20 µs. */
const SAMPLE_MS = 250

/** Measures the share of memory in use: of V8's heap limit or of the container's memory, whichever is fuller. */
function usedShare(): number {
  const { heap_size_limit: heapLimit } = getHeapStatistics()
  const heap = process.memoryUsage().heapUsed / heapLimit
  const container = process.constrainedMemory()
  // Without a container limit node answers 0, or a number beyond any machine.
  if (!(container > 0 && container < 2 ** 50)) return heap
  return Math.max(heap, process.memoryUsage.rss() / container)
}

/** Tells whether memory is above the watermark. */
export class MemoryWatermark {
  readonly #measure: () => number
  #percent: number
  #sampledAt = Number.NEGATIVE_INFINITY
  #exceeded = false

  /** @param percent 0 is no watermark */
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
