import type { SseStream } from './sse.ts'

/** The open streams of one connector: counted, limited, and ended together at shutdown. */
export class OpenStreams {
  readonly #limit: number
  readonly #streams = new Set<SseStream>()
  #closed = false

  /** @param limit The most that may be open at a time; 0 is no limit. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** How many are open now. */
  get size(): number {
    return this.#streams.size
  }

  /** Whether another one may be opened. False for good after {@link closeAll}. */
  get hasRoom(): boolean {
    return !this.#closed && (this.#limit === 0 || this.#streams.size < this.#limit)
  }

  /** Counts the stream until it is over. Ask {@link hasRoom} before you open one. */
  add(stream: SseStream): void {
    this.#streams.add(stream)
    stream.onEnd(() => this.#streams.delete(stream))
    if (this.#closed) stream.end()
  }

  /** Ends every stream politely and lets no other begin. Idempotent. */
  closeAll(): void {
    this.#closed = true
    for (const stream of this.#streams) stream.end()
  }
}
