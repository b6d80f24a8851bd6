import { Readable } from 'node:stream'

import type { Dispatcher } from 'undici'

import type { UpstreamResponse } from '../stream/index.ts'

const READ_AHEAD_BYTES = 65_536

/**
 * An agent's response, its body read as far as somebody reads it: the agent's connection is not read further than that
 * and {@link READ_AHEAD_BYTES}. `end` comes only after the whole of it; one that was cut is destroyed with an error.
 */
export class AgentResponse extends Readable implements UpstreamResponse {
  readonly headers: UpstreamResponse['headers']
  readonly #controller: Dispatcher.DispatchController

  constructor(headers: UpstreamResponse['headers'], controller: Dispatcher.DispatchController) {
    super({ highWaterMark: READ_AHEAD_BYTES })
    this.headers = headers
    this.#controller = controller
    // It may be cut before anybody reads it.
    this.on('error', () => {})
  }

  /** Takes the next piece of the body. */
  feed(chunk: Uint8Array): void {
    if (!this.push(chunk)) this.#controller.pause()
  }

  /** @inheritdoc */
  override _read(): void {
    this.#controller.resume()
  }

  /** @inheritdoc */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // Nothing happens where the body is through.
    this.#controller.abort(error ?? new Error('nobody reads it any more'))
    done(error)
  }
}
