/**
 * Closes what was opened, in the opposite order. The part of the language's `AsyncDisposableStack` that the server needs:
 * Node has that from 24 on, and the server runs from Node 22.19 on.
 */
export class DisposalStack implements AsyncDisposable {
  readonly #steps: (() => unknown)[] = []
  #disposed: Promise<void> | undefined

  /** Adds a part, and returns it. */
  use<T extends AsyncDisposable | Disposable | undefined>(part: T): T {
    if (part !== undefined) {
      this.defer(() => (Symbol.asyncDispose in part ? part[Symbol.asyncDispose]() : part[Symbol.dispose]()))
    }
    return part
  }

  /** Adds a step. The steps that were added before it run after it. */
  defer(step: () => unknown): void {
    this.#steps.push(step)
  }

  /**
   * Runs every step, the last one first, also when some fail. A second call waits for the first one.
   * @throws the error of the step that failed, or an AggregateError when several did
   */
  disposeAsync(): Promise<void> {
    return (this.#disposed ??= this.#run())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.disposeAsync()
  }

  async #run(): Promise<void> {
    const errors: unknown[] = []
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) {
      try {
        // One after the other: the order is the purpose.
        await step()
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 1) throw new AggregateError(errors, 'several parts could not be closed')
    if (errors.length === 1) throw errors[0]
  }
}
