import type { LookupAddress } from 'node:dns'

/** The system's resolver takes a thread of a pool of four, which files and other names need too. */
const AT_ONCE = 2
/** A name server that is away should not hold up a registration. */
const PATIENCE_MS = 3_000

/** Resolves names for registrations: few at a time, and not for long. */
export class Resolutions {
  readonly #resolve: (hostname: string) => Promise<readonly LookupAddress[]>
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(resolve: (hostname: string) => Promise<readonly LookupAddress[]>) {
    this.#resolve = resolve
  }

  /** Empty when the name has no address, or none within 3 s. */
  async of(hostname: string): Promise<readonly LookupAddress[]> {
    let timer: NodeJS.Timeout | undefined
    let overdue = false
    const late = new Promise<readonly LookupAddress[]>((resolve) => {
      timer = setTimeout(() => {
        overdue = true
        resolve([])
      }, PATIENCE_MS)
      timer.unref()
    })
    const found = this.#inTurn(async () => (overdue ? [] : this.#resolve(hostname))).catch(() => [])
    try {
      return await Promise.race([found, late])
    } finally {
      clearTimeout(timer)
    }
  }

  /** A turn ends when the resolver is done: it cannot be told to stop. */
  async #inTurn<T>(call: () => Promise<T>): Promise<T> {
    if (this.#running >= AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running++
    try {
      return await call()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }
}
