import { Buffer } from 'node:buffer'

import type { StreamFrame } from '../channel/frame.ts'

/** Puts events together that traveled in parts. */
export class Assembly {
  readonly #maxBytes: number
  #parts: Uint8Array[] = []
  #bytes = 0

  /** @param maxBytes The largest event, as the client gets it. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Whole events, once there are any; `too large` for what can be no event. */
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
