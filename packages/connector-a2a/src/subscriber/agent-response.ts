import { Readable } from 'node:stream'

import type { Dispatcher } from 'undici'

import type { AgentBody } from '../stream/agent-stream.ts'

const READ_AHEAD_BYTES = 65_536

/**
 * The body of an agent's response. Reads at most {@link READ_AHEAD_BYTES} ahead of its reader. Ends
 * only when the body is complete; a response that was cut off is destroyed with an error.
 */
export class AgentResponse extends Readable implements AgentBody {
  readonly headers: AgentBody['headers']
  readonly #controller: Dispatcher.DispatchController
  /** The chunks that wait, while there is something to wait for. */
  #held: (Uint8Array | null)[] | undefined

  constructor(headers: AgentBody['headers'], controller: Dispatcher.DispatchController) {
    super({ highWaterMark: READ_AHEAD_BYTES })
    this.headers = headers
    this.#controller = controller
    // It may be cut off before it has a reader.
    this.on('error', () => {})
  }

  /**
   * Adds the next chunk of the body; null is its end.
   * @param until The chunk and those after it are not read before this promise resolves
   */
  feed(chunk: Uint8Array | null, until?: Promise<unknown>): void {
    if (until !== undefined) this.#hold(until)
    if (this.#held !== undefined) this.#held.push(chunk)
    else if (!this.push(chunk)) this.#controller.pause()
  }

  #hold(until: Promise<unknown>): void {
    const held: (Uint8Array | null)[] = []
    this.#held = held
    this.#controller.pause()
    until.then(
      () => {
        this.#held = undefined
        let hasRoom = true
        for (const chunk of held) hasRoom = this.push(chunk)
        // At once, the controller may add the next chunk, or the end.
        if (hasRoom) this.#controller.resume()
      },
      (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
    )
  }

  /** @inheritdoc */
  override _read(): void {
    if (this.#held === undefined) this.#controller.resume()
  }

  /** @inheritdoc */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // Has no effect after the end of the body.
    this.#controller.abort(error ?? new Error('the response has no reader any more'))
    done(error)
  }
}
