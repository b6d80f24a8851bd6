import { Buffer } from 'node:buffer'

import type { StreamFrame } from '../channel/frame.ts'

/** Joins events that came in parts. */
export class Assembly {
  readonly #maxBytes: number
  #parts: Uint8Array[] = []
  #bytes = 0

  /** @param maxBytes The size of the largest event, as the client gets it, in bytes */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Returns whole events, once complete; `too large` if the parts exceed the limit. */
  add({ body, more, cut }: StreamFrame): Uint8Array | 'too large' | undefined {
    if (cut) this.clear()
    if (!more && this.#parts.length === 0) return body
    this.#bytes += body.length
    if (this.#bytes > this.#maxBytes) return 'too large'
    this.#parts.push(body)
    if (more) return undefined
    const whole = Buffer.concat(this.#parts, this.#bytes)
    this.clear()
    return whole
  }

  clear(): void {
    this.#parts = []
    this.#bytes = 0
  }
}
