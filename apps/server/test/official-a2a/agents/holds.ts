/** The executions of an agent that wait for a release or a cancellation. */
export class Holds {
  readonly #waiting = new Map<string, (how: 'released' | 'canceled') => void>()

  wait(taskId: string): Promise<'released' | 'canceled'> {
    return new Promise((resolve) => this.#waiting.set(taskId, resolve))
  }

  cancel(taskId: string): void {
    this.#end(taskId, 'canceled')
  }

  /** Releases a task; false if it does not wait. */
  release(taskId: string): boolean {
    return this.#end(taskId, 'released')
  }

  #end(taskId: string, how: 'released' | 'canceled'): boolean {
    const end = this.#waiting.get(taskId)
    this.#waiting.delete(taskId)
    end?.(how)
    return end !== undefined
  }
}
