/** The time for which subscribers that catch up may block the event loop without a pause, in ms. */
const TURN_MS = 2

/** Runs tasks in the order of their addition, for a few milliseconds at a time. */
export class Turns {
  #tasks: (() => void)[] = []
  #scheduled = false

  add(task: () => void): void {
    this.#tasks.push(task)
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#run())
  }

  #run(): void {
    const end = performance.now() + TURN_MS
    let done = 0
    while (done < this.#tasks.length && performance.now() < end) this.#tasks[done++]?.()
    this.#tasks = this.#tasks.slice(done)
    this.#scheduled = this.#tasks.length > 0
    if (this.#scheduled) setImmediate(() => this.#run())
  }
}
