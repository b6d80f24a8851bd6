import { Buffer } from 'node:buffer'

import type { OutgoingMessage } from '../message.ts'

/** The parts of a message that have a size. */
export type MessageContent = Pick<OutgoingMessage, 'body' | 'metadata' | 'tags'>

/** A limit on the size of one result. */
export interface ResultLimit {
  /**
   * A soft limit on the size of one result. The first message is always returned; a further one only if it fits.
   * Others stay where they are, and are not leased.
   * @default none
   */
  readonly maxBytes?: number | undefined
  /**
   * Returns the size of a message in the result, such as its size in JSON; never less than its bytes.
   * @default the bytes of body, metadata and tags
   */
  readonly sizeOf?: ((message: MessageContent) => number) | undefined
  /**
   * Called with the bytes of a large first message before it is read, where the engine knows them. Throws to refuse the
   * read; then nothing is leased.
   * @default every message is read
   */
  readonly admit?: ((bytes: number) => void) | undefined
  /** Called when the first message was read. @default none */
  readonly onFirst?: (() => void) | undefined
  /** Called if `maxBytes` keeps a message out of the result. @default none */
  readonly onMore?: (() => void) | undefined
}

/** Smaller first messages are read without being asked for, in bytes. */
const LARGE_BYTES = 65_536

/** The size of a first message is computed at the second if it is smaller than this, in bytes: most results have one. */
const SMALL_BYTES = 2_048

/** Adds up the sizes of the messages in one result, for engines. */
export class ResultSize {
  readonly #limit: ResultLimit
  #left: number
  #isEmpty = true
  /** A first message whose size is not subtracted yet. */
  #uncounted: MessageContent | undefined

  constructor(limit: ResultLimit) {
    this.#limit = limit
    this.#left = limit.maxBytes ?? Infinity
  }

  /** `true` if no further message fits. */
  get isFull(): boolean {
    return !this.#isEmpty && this.#room() <= 0
  }

  /**
   * Returns whether a message of this many bytes may fit. A message that does not fit need not be read.
   * @throws the error of {@link ResultLimit.admit}
   */
  mayFit(bytes: number): boolean {
    if (this.#isEmpty && bytes > LARGE_BYTES) this.#limit.admit?.(bytes)
    return this.#fits(bytes)
  }

  #fits(bytes: number): boolean {
    if (this.#isEmpty || bytes <= this.#room()) return true
    this.leaveOut()
    return false
  }

  /** Adds a message if it fits. Returns whether it does. */
  add(message: MessageContent, bytes: number): boolean {
    if (this.#isEmpty) this.#limit.onFirst?.()
    if (!this.#fits(bytes)) return false
    if (this.#isEmpty) this.#addFirst(message, bytes)
    else {
      const size = this.#limit.sizeOf?.(message) ?? bytes
      if (size > this.#left) {
        this.leaveOut()
        return false
      }
      this.#left -= size
    }
    return true
  }

  #addFirst(message: MessageContent, bytes: number): void {
    const { sizeOf } = this.#limit
    this.#isEmpty = false
    // The size of a first message that fills the result does not matter, and computing it can take long.
    if (sizeOf === undefined || bytes >= this.#left) this.#left -= bytes
    else if (bytes < SMALL_BYTES) this.#uncounted = message
    else this.#left -= sizeOf(message)
  }

  /** Returns the bytes that are left for further messages. */
  #room(): number {
    const first = this.#uncounted
    if (first !== undefined) {
      this.#uncounted = undefined
      this.#left -= this.#limit.sizeOf?.(first) ?? 0
    }
    return this.#left
  }

  /** Reports that the limit keeps a message out of the result. */
  leaveOut(): void {
    this.#limit.onMore?.()
  }
}

/** Returns the bytes of body, metadata and tags together, the size that limits and counters use. */
export function messageSize({ body, metadata, tags }: Pick<OutgoingMessage, 'body' | 'metadata' | 'tags'>): number {
  let bytes = body.byteLength
  if (metadata !== '') bytes += Buffer.byteLength(metadata)
  for (const key of Object.keys(tags)) bytes += Buffer.byteLength(key) + Buffer.byteLength(tags[key] ?? '')
  return bytes
}
