import { half } from '../admission/limits.ts'
import type { SseStream } from './sse.ts'

/** Counts calls in flight, so that a shutdown can wait for them. */
export class InFlight {
  #count = 0
  #whenIdle: (() => void)[] = []

  get count(): number {
    return this.#count
  }

  begin(): void {
    this.#count++
  }

  finish(): void {
    if (--this.#count > 0) return
    const listeners = this.#whenIdle
    this.#whenIdle = []
    for (const resolve of listeners) resolve()
  }

  /** Resolves when no call is in flight. */
  idle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    return new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  /** Resolves with `true` when no call is in flight, or with `false` after `ms` milliseconds. */
  idleWithin(ms: number): Promise<boolean> {
    if (this.#count === 0) return Promise.resolve(true)
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), ms)
      this.#whenIdle.push(() => {
        clearTimeout(timer)
        resolve(true)
      })
    })
  }
}

/**
 * The open streams of one connector: counts them, limits them, and ends them at shutdown. One caller may have half of
 * them.
 */
export class OpenStreams {
  /** The most streams that may be open at a time; 0 means no limit. */
  readonly limit: number
  readonly #streams = new Set<SseStream>()
  readonly #byAccount = new Map<string, number>()
  #closed = false

  /** @param limit The most streams that may be open at a time; 0 means no limit */
  constructor(limit: number) {
    this.limit = limit
  }

  /** The number of open streams. */
  get size(): number {
    return this.#streams.size
  }

  /** Returns `true` if the caller may open another stream. Always `false` after {@link closeAll}. */
  hasRoomFor(account: string): boolean {
    if (this.#closed) return false
    if (this.limit === 0) return true
    return this.#streams.size < this.limit && (this.#byAccount.get(account) ?? 0) < half(this.limit)
  }

  /** `true` until {@link closeAll}: streams may be opened. */
  get open(): boolean {
    return !this.#closed
  }

  /** Counts the stream until it is over. Call {@link hasRoomFor} before you open a stream. */
  add(stream: SseStream, account: string): void {
    this.#streams.add(stream)
    this.#byAccount.set(account, (this.#byAccount.get(account) ?? 0) + 1)
    stream.onEnd(() => {
      this.#streams.delete(stream)
      const left = (this.#byAccount.get(account) ?? 1) - 1
      if (left > 0) this.#byAccount.set(account, left)
      else this.#byAccount.delete(account)
    })
    if (this.#closed) stream.end()
  }

  /** Ends every stream after its written events, and rejects new ones. Idempotent. */
  closeAll(): void {
    this.#closed = true
    for (const stream of this.#streams) stream.end()
  }
}
