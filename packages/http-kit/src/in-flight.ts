/** How many calls are under way, for a shutdown that waits for them. */
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

  /** Resolves as soon as nothing is under way. */
  idle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    return new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  /** Resolves with true as soon as nothing is under way, with false when `ms` pass first. */
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
