/** A call on this node that has a task. */
export interface TaskWork {
  /** Ends the call: its task is over, or another node has it. */
  abandon(): void
}

/**
 * The calls of this node by the id of their task. A task has several while its next state is being written: the call
 * that asked for input has not returned, and requests that want to continue it compete.
 */
export class RunningWork {
  readonly #work = new Map<string, Set<TaskWork>>()

  has(id: string): boolean {
    return this.#work.has(id)
  }

  add(id: string, work: TaskWork): void {
    const all = this.#work.get(id)
    if (all === undefined) this.#work.set(id, new Set([work]))
    else all.add(work)
  }

  delete(id: string, work: TaskWork): void {
    const all = this.#work.get(id)
    all?.delete(work)
    if (all?.size === 0) this.#work.delete(id)
  }

  /** Ends the calls of a task. */
  abandon(id: string): void {
    for (const work of this.#work.get(id) ?? []) work.abandon()
  }
}
