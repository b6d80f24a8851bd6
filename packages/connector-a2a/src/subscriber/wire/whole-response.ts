import { Readable } from 'node:stream'

import type { UpstreamResponse } from '../../stream/index.ts'

/** A plain response that was read completely, for a stream whose one event it is. */
export class WholeResponse extends Readable implements UpstreamResponse {
  readonly headers: UpstreamResponse['headers'] = { 'content-type': 'application/json' }
  readonly #body: Uint8Array

  constructor(body: Uint8Array) {
    super()
    this.#body = body
  }

  /** @inheritdoc */
  override _read(): void {
    if (this.#body.byteLength > 0) this.push(this.#body)
    this.push(null)
  }
}
