import type { Message } from '@signalbox/broker-core'

/** A message that is to be delivered. */
export interface Item {
  readonly message: Message
  /** The position in its events store; 0 for other sources. */
  readonly sequence: number
  /** The receipt of its lease; empty for other sources than queues. */
  readonly receipt: string
  /** A stable part of the delivery id. */
  readonly name: string
  /** The position after the message in a connector's source; undefined for channels. */
  readonly position?: string
}

/** The stored or live messages of a subscription. */
export interface Source {
  /**
   * Returns at least one message, or a promise if there is none yet; no message once the source has ended. Throws or rejects with the signal's reason when the
   * source is stopped.
   */
  take(max: number): readonly Item[] | Promise<readonly Item[]>
  /** Called after a message was delivered or became a dead letter. Returns a promise if there is something to do. */
  settle(items: readonly Item[]): Promise<void> | undefined
  /** Called before a pause, in ms, after which the messages are tried again. Returns `false` if they were lost. */
  keep(items: readonly Item[], ms: number): Promise<boolean>
  /** Returns the messages that are not settled to their queue. */
  release(items: readonly Item[]): Promise<void>
  close(): Promise<void>
}

/** The most messages, and the most bytes, in one delivery and in the buffer of one subscription. */
export const BUFFERED_ITEMS = 64
export const BUFFERED_BYTES = 1024 * 1024

/** The most deliveries of a subscription under way, if it does not ask for order. */
export const UNORDERED_IN_FLIGHT = 16

/** The most messages of a subscription under way. */
export const MAX_IN_FLIGHT = UNORDERED_IN_FLIGHT * BUFFERED_ITEMS

/** A bounded buffer between the messages that arrive and the deliveries that take them. */
export class ItemBuffer {
  readonly #maxItems: number
  readonly #maxBytes: number
  readonly #signal: AbortSignal
  readonly #items: Item[] = []
  #bytes = 0
  #notEmpty: (() => void) | undefined
  #room: (() => void) | undefined

  constructor(maxItems: number, maxBytes: number, signal: AbortSignal) {
    this.#maxItems = maxItems
    this.#maxBytes = maxBytes
    this.#signal = signal
    signal.addEventListener('abort', () => {
      this.#notEmpty?.()
      this.#room?.()
    })
  }

  get full(): boolean {
    return this.#items.length >= this.#maxItems || this.#bytes >= this.#maxBytes
  }

  push(item: Item): void {
    this.#items.push(item)
    this.#bytes += item.message.body.byteLength
    this.#notEmpty?.()
  }

  /** Resolves when half of the buffer is free, or the signal is aborted. */
  hasRoom(): Promise<void> {
    if (this.#signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      this.#room = resolve
    })
  }

  /** Takes up to `max` items of up to `maxBytes` together, and at least one: a promise if there is none yet. */
  take(max: number, maxBytes: number): readonly Item[] | Promise<readonly Item[]> {
    if (this.#items.length === 0) return this.#takeLater(max, maxBytes)
    this.#signal.throwIfAborted()
    return this.#takeNow(max, maxBytes)
  }

  async #takeLater(max: number, maxBytes: number): Promise<readonly Item[]> {
    while (this.#items.length === 0) {
      this.#signal.throwIfAborted()
      await new Promise<void>((resolve) => {
        this.#notEmpty = resolve
      })
    }
    this.#signal.throwIfAborted()
    return this.#takeNow(max, maxBytes)
  }

  #takeNow(max: number, maxBytes: number): readonly Item[] {
    let count = 1
    let bytes = this.#items[0]?.message.body.byteLength ?? 0
    for (; count < Math.min(max, this.#items.length); count++) {
      const more = this.#items[count]?.message.body.byteLength ?? 0
      if (bytes + more > maxBytes) break
      bytes += more
    }
    const taken = this.#items.splice(0, count)
    this.#bytes -= bytes
    if (this.#room !== undefined && this.#halfEmpty) {
      this.#room()
      this.#room = undefined
    }
    return taken
  }

  /** `true` if the source should add items. Not for each free place: it would wait for each of its items. */
  get #halfEmpty(): boolean {
    return this.#items.length <= this.#maxItems / 2 && this.#bytes <= this.#maxBytes / 2
  }
}
