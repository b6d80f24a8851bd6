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
  readonly maxBytes?: number
  /**
   * Returns the size of a message in the result, such as its size in JSON; never less than its bytes.
   * @default the bytes of body, metadata and tags
   */
  readonly sizeOf?: (message: MessageContent) => number
  /**
   * Called with the bytes of a large first message before it is read, where the engine knows them. Throws to refuse the
   * read; then nothing is leased.
   * @default every message is read
   */
  readonly admit?: (bytes: number) => void
  /** Called when the first message was read. @default none */
  readonly onFirst?: () => void
  /** Called if `maxBytes` keeps a message out of the result. @default none */
  readonly onMore?: () => void
}

/** Smaller first messages are read without being asked for, in bytes. */
const LARGE_BYTES = 65_536

/** Adds up the sizes of the messages in one result, for engines. */
export class ResultSize {
  readonly #limit: ResultLimit
  #left: number
  #isEmpty = true

  constructor(limit: ResultLimit) {
    this.#limit = limit
    this.#left = limit.maxBytes ?? Infinity
  }

  /** `true` if no further message fits. */
  get isFull(): boolean {
    return !this.#isEmpty && this.#left <= 0
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
    if (this.#isEmpty || bytes <= this.#left) return true
    this.leaveOut()
    return false
  }

  /** Adds a message if it fits. Returns whether it does. */
  add(message: MessageContent, bytes: number): boolean {
    if (this.#isEmpty) this.#limit.onFirst?.()
    if (!this.#fits(bytes)) return false
    // The size of a first message that fills the result does not matter, and computing it can take long.
    const isCounted = this.#limit.sizeOf === undefined || (this.#isEmpty && bytes >= this.#left)
    const size = isCounted ? bytes : (this.#limit.sizeOf?.(message) ?? bytes)
    if (!this.#isEmpty && size > this.#left) {
      this.leaveOut()
      return false
    }
    this.#isEmpty = false
    this.#left -= size
    return true
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
