/** Counts calls in flight, so that a shutdown can wait for them. */
export class InFlight {
  #count = 0
  #whenIdle: (() => void)[] = []

  get count(): number {
    return this.#count
  }

  begin(): void {
    this.#count++
  }

  finish(): void {
    if (--this.#count > 0) return
    const listeners = this.#whenIdle
    this.#whenIdle = []
    for (const resolve of listeners) resolve()
  }

  /** Resolves when no call is in flight. */
  idle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    return new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  /** Resolves with `true` when no call is in flight, or with `false` after `ms` milliseconds. */
  idleWithin(ms: number): Promise<boolean> {
    if (this.#count === 0) return Promise.resolve(true)
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), ms)
      this.#whenIdle.push(() => {
        clearTimeout(timer)
        resolve(true)
      })
    })
  }
}
