import { Buffer } from 'node:buffer'

import { fairTurns } from './fair-turns.ts'

// The reading of large bodies: of requests, and of the replies of agents.

/** The bytes of a body that are read at once. */
const PART_BYTES = 524_288

/** A chunk of a byte takes as long as some hundred bytes of a large one. */
const LEAST_BYTES = 256

/** The source of a body. */
interface Pausable {
  pause(): unknown
  resume(): unknown
}

/** Reads a large body a part at a time, in turns with the dear work of other callers. */
export class ReadingTurns {
  readonly #account: string
  #left = PART_BYTES

  /** @param account The key of the account that the body counts for */
  constructor(account: string) {
    this.#account = account
  }

  /** Records bytes that were read. After a part, pauses the source until it is the account's turn. */
  read(bytes: number, source: Pausable): void {
    this.#left -= Math.max(bytes, LEAST_BYTES)
    if (this.#left > 0) return
    this.#left = PART_BYTES
    source.pause()
    fairTurns.restAfter(this.#account, PART_BYTES)
    fairTurns.run(this.#account, () => source.resume())
  }

  /** Begins a new part, because the bytes of the last one are not in memory any more. */
  restart(): void {
    this.#left = PART_BYTES
  }
}

const EMPTY = Buffer.alloc(0)

/** A body that outgrows a buffer of this size gets one for the largest body: to copy megabytes again takes long. */
const LARGE_BUFFER_BYTES = 1_048_576

/** The most bytes that such a buffer reserves: a host may allow bodies of any size. */
const MAX_RESERVED_BYTES = 16 * 1_048_576

/**
 * The bytes of a body while it arrives. It is one buffer that grows: a list of chunks would take a hundred bytes for
 * each, and joining it at the end would block the event loop, and double the memory.
 */
export class BodyBytes {
  readonly #limit: number
  #first: Buffer | undefined
  #buffer = EMPTY
  #length = 0

  /** @param limit The most bytes of the body */
  constructor(limit: number) {
    this.#limit = limit
  }

  get length(): number {
    return this.#length
  }

  /** Adds a chunk. @param capacity The bytes of a larger buffer, if one is needed: at least those of all chunks */
  add(chunk: Buffer, capacity: number): void {
    // Most bodies have one chunk, which needs no copy.
    if (this.#length === 0) this.#first = chunk
    else {
      if (this.#length + chunk.byteLength > this.#buffer.byteLength) this.#grow(capacity)
      this.#buffer.set(chunk, this.#length)
    }
    this.#length += chunk.byteLength
  }

  /** Returns all bytes, and forgets them. */
  take(): Buffer {
    const body = this.#whole()
    this.clear()
    return body
  }

  clear(): void {
    this.#first = undefined
    this.#buffer = EMPTY
    this.#length = 0
  }

  #whole(): Buffer {
    return this.#first ?? this.#buffer.subarray(0, this.#length)
  }

  #grow(capacity: number): void {
    // The part of a large buffer that is never written takes no memory.
    const size =
      this.#buffer.byteLength < LARGE_BUFFER_BYTES
        ? capacity
        : Math.max(capacity, Math.min(this.#limit, MAX_RESERVED_BYTES))
    const larger = Buffer.allocUnsafeSlow(size)
    larger.set(this.#whole())
    this.#buffer = larger
    this.#first = undefined
  }
}
