import { unlessAborted } from '@signalbox/broker-core/internal'

/**
 * Closes the opened parts in the opposite order. Implements the part of `AsyncDisposableStack` that
 * the server needs: Node has that class from 24 on, and the server runs from Node 22.19 on.
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

  /** Adds a step. Steps that were added earlier run later. */
  defer(step: () => unknown): void {
    this.#steps.push(step)
  }

  /**
   * Runs every step, the last one first, even if some fail. A second call waits for the first one.
   * @throws the error of the step that failed, or an AggregateError if several failed
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
        // One after the other: the order matters.
        await step()
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 1) throw new AggregateError(errors, 'several parts failed to close')
    if (errors.length === 1) throw errors[0]
  }
}

/**
 * Waits for a part that is being opened, or until the signal is aborted. A part that opens later is
 * closed.
 * @throws the signal's reason, and the error of `opening`
 */
export async function untilAborted<T>(
  opening: Promise<T>,
  signal: AbortSignal | undefined,
  close: (late: T) => Promise<void>,
): Promise<T> {
  if (signal === undefined) return opening
  try {
    return await unlessAborted(opening, signal)
  } catch (error) {
    // The caller has left with the signal's reason, so later errors have no receiver.
    if (signal.aborted) opening.then(close).catch(() => {})
    throw error
  }
}
