import { Buffer } from 'node:buffer'

import type { ByteBudget, Refusal } from '@signalbox/http-kit'

import type { StreamFrame } from '../channel/frame.ts'
import { EventBytes } from '../event-bytes.ts'

/** Joins events that came in parts. */
export class Assembly {
  readonly #maxBytes: number
  #parts: Uint8Array[] = []
  #bytes = 0
  #counted = new EventBytes(undefined)

  /** @param maxBytes The size of the largest event, as the client gets it, in bytes */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Counts the bytes of the parts from now on. */
  countIn(budget: ByteBudget | undefined): void {
    this.#counted = new EventBytes(budget)
  }

  /** Returns whole events, once complete; `too large` if the parts exceed the limit, or the refusal of a budget. */
  add({ body, more, cut }: StreamFrame): Uint8Array | Refusal | 'too large' | undefined {
    if (cut) this.clear()
    if (!more && this.#parts.length === 0) return body
    this.#bytes += body.length
    if (this.#bytes > this.#maxBytes) return 'too large'
    // Twice: joining the parts copies them.
    const refusal = this.#counted.set(2 * this.#bytes)
    if (refusal !== undefined) return refusal
    this.#parts.push(body)
    if (more) return undefined
    const whole = Buffer.concat(this.#parts, this.#bytes)
    this.clear()
    return whole
  }

  clear(): void {
    this.#parts = []
    this.#bytes = 0
    this.#counted.set(0)
  }
}
