import { Readable } from 'node:stream'

import type { AgentBody } from '../../stream/agent-stream.ts'

/** A plain response that was read completely, for a stream whose one event it is. */
export class WholeResponse extends Readable implements AgentBody {
  readonly headers: AgentBody['headers'] = { 'content-type': 'application/json' }
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
