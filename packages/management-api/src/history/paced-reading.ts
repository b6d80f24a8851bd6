/** The pause after a reading, as a multiple of its duration: an engine is busy with it 2 % of the time. */
const PAUSE_FACTOR = 50

/**
 * A number of an engine that the history reads at each step. A slow engine is asked less often, and
 * the previous value is used in between.
 */
export class PacedReading<Value> {
  readonly #read: () => Promise<Value>
  #value: Value | undefined
  #running: Promise<void> | undefined
  #notBefore = 0

  constructor(read: () => Promise<Value>) {
    this.#read = read
  }

  /** Returns the current value, or after `waitMs` the previous one; undefined if the reading failed. */
  async value(waitMs: number): Promise<Value | undefined> {
    if (performance.now() >= this.#notBefore) this.#running ??= this.#start()
    if (this.#running !== undefined) {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, waitMs).unref()))
      await Promise.race([this.#running, late])
      clearTimeout(timer)
    }
    return this.#value
  }

  async #start(): Promise<void> {
    const startedAt = performance.now()
    try {
      this.#value = await this.#read()
    } catch {
      this.#value = undefined
    } finally {
      const now = performance.now()
      this.#notBefore = now + (now - startedAt) * PAUSE_FACTOR
      this.#running = undefined
    }
  }
}
