import { Readable } from 'node:stream'

import type { Dispatcher } from 'undici'

import type { UpstreamResponse } from '../stream/index.ts'

const READ_AHEAD_BYTES = 65_536

/**
 * The body of an agent's response. Reads at most {@link READ_AHEAD_BYTES} ahead of its reader. Ends
 * only when the body is complete; a response that was cut off is destroyed with an error.
 */
export class AgentResponse extends Readable implements UpstreamResponse {
  readonly headers: UpstreamResponse['headers']
  readonly #controller: Dispatcher.DispatchController

  constructor(headers: UpstreamResponse['headers'], controller: Dispatcher.DispatchController) {
    super({ highWaterMark: READ_AHEAD_BYTES })
    this.headers = headers
    this.#controller = controller
    // It may be cut off before it has a reader.
    this.on('error', () => {})
  }

  /** Adds the next chunk of the body. */
  feed(chunk: Uint8Array): void {
    if (!this.push(chunk)) this.#controller.pause()
  }

  /** @inheritdoc */
  override _read(): void {
    this.#controller.resume()
  }

  /** @inheritdoc */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // Has no effect after the end of the body.
    this.#controller.abort(error ?? new Error('the response has no reader any more'))
    done(error)
  }
}
