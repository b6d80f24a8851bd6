import { Buffer } from 'node:buffer'

import type { HeldBytes } from '@signalbox/http-kit/internal'
import type { AgentReply } from '../requests/agent-reply.ts'
import { refusedReply } from '../requests/agent-reply.ts'

import { RESPONSE_TOO_LARGE } from './agent-failures.ts'

const EMPTY = Buffer.alloc(0)

/**
 * The body of an agent's response while it arrives. It is one buffer that grows: a list of chunks would take a hundred
 * bytes for each, so an agent that sends single bytes could fill the memory, and joining the list would double it.
 */
export class ReplyBody {
  readonly #held: HeldBytes
  readonly #maxBytes: number
  #declared = 0
  #first: Buffer | undefined
  #buffer = EMPTY
  #bytes = 0
  #charged = 0

  /** @param held Counts the bytes; they stay counted after the end of the response */
  constructor(held: HeldBytes, maxBytes: number) {
    this.#held = held
    this.#maxBytes = maxBytes
  }

  /** Records the header Content-Length. Returns the reply for a response that is too large. */
  declare(contentLength: number): AgentReply | undefined {
    if (contentLength > this.#maxBytes) return RESPONSE_TOO_LARGE
    if (contentLength > 0) this.#declared = contentLength
    return undefined
  }

  /** Adds a chunk. Returns the reply if the response is too large, or a budget refuses it. */
  add(chunk: Buffer): AgentReply | undefined {
    const bytes = this.#bytes + chunk.byteLength
    if (bytes > this.#maxBytes) return RESPONSE_TOO_LARGE
    // The declared length is counted with the first byte, as in a request: otherwise several replies that do not all
    // fit would each get a part of the budget, and none would complete.
    const size = Math.max(bytes, this.#declared, Math.min(2 * this.#charged, this.#maxBytes))
    const refusal = bytes > this.#charged ? this.#charge(size) : undefined
    if (refusal !== undefined) return refusal
    if (this.#bytes === 0) this.#first = chunk
    else this.#copy(chunk)
    this.#bytes = bytes
    return undefined
  }

  /** Returns the whole body. */
  take(): Buffer {
    return this.#first ?? this.#buffer.subarray(0, this.#bytes)
  }

  /** Drops the body, and subtracts its bytes. */
  drop(): void {
    this.#first = undefined
    this.#buffer = EMPTY
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

  /** Copies a chunk into the buffer, which is made for the second chunk: most responses have one. */
  #copy(chunk: Buffer): void {
    if (this.#bytes + chunk.byteLength > this.#buffer.byteLength) {
      const larger = Buffer.allocUnsafeSlow(this.#charged)
      larger.set(this.take())
      this.#buffer = larger
      this.#first = undefined
    }
    this.#buffer.set(chunk, this.#bytes)
  }
}
