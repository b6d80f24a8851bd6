import { getHeapStatistics } from 'node:v8'

/** The age up to which a measurement is reused, in ms. A measurement takes about 20 µs. */
const SAMPLE_MS = 250

/** Returns the larger share in use: of V8's heap limit or of the container's memory. */
function usedShare(): number {
  const { heap_size_limit: heapLimit } = getHeapStatistics()
  const heap = process.memoryUsage().heapUsed / heapLimit
  const container = process.constrainedMemory()
  // Without a container limit Node returns 0, or a number larger than any memory.
  if (!(container > 0 && container < 2 ** 50)) return heap
  return Math.max(heap, process.memoryUsage.rss() / container)
}

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
