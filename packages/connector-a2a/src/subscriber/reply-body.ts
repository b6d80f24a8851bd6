import type { Buffer } from 'node:buffer'

import type { HeldBytes } from '@signalbox/http-kit/internal'
import { BodyBytes } from '@signalbox/http-kit/internal'
import type { AgentReply } from '../requests/agent-reply.ts'
import { refusedReply } from '../requests/agent-reply.ts'

import { RESPONSE_TOO_LARGE } from './agent-failures.ts'

/** The body of an agent's response while it arrives. */
export class ReplyBody {
  readonly #held: HeldBytes
  readonly #maxBytes: number
  #declared = 0
  readonly #body: BodyBytes
  #charged = 0

  /** @param held Counts the bytes; they stay counted after the end of the response */
  constructor(held: HeldBytes, maxBytes: number) {
    this.#held = held
    this.#maxBytes = maxBytes
    this.#body = new BodyBytes(maxBytes)
  }

  /** Records the header Content-Length. Returns the reply for a response that is too large. */
  declare(contentLength: number): AgentReply | undefined {
    if (contentLength > this.#maxBytes) return RESPONSE_TOO_LARGE
    if (contentLength > 0) this.#declared = contentLength
    return undefined
  }

  /** Adds a chunk. Returns the reply if the response is too large, or a budget refuses it. */
  add(chunk: Buffer): AgentReply | undefined {
    const bytes = this.#body.length + chunk.byteLength
    if (bytes > this.#maxBytes) return RESPONSE_TOO_LARGE
    // The declared length is counted with the first byte, as in a request: otherwise several replies that do not all
    // fit would each get a part of the budget, and none would complete.
    const size = Math.max(bytes, this.#declared, Math.min(2 * this.#charged, this.#maxBytes))
    const refusal = bytes > this.#charged ? this.#charge(size) : undefined
    if (refusal !== undefined) return refusal
    this.#body.add(chunk, this.#charged)
    return undefined
  }

  /** Returns the whole body. */
  take(): Buffer {
    return this.#body.take()
  }

  /** Drops the body, and subtracts its bytes. */
  drop(): void {
    this.#body.clear()
    this.#held.discharge(this.#charged)
    this.#charged = 0
  }

  #charge(size: number): AgentReply | undefined {
    const more = size - this.#charged
    const refusal = this.#held.charge(more)
    if (refusal !== undefined) return refusedReply(refusal)
    this.#charged = size
    const short = this.#held.refusesBody(size)
    return short === undefined ? undefined : refusedReply(short)
  }
}
