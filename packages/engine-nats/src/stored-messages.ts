import { unavailable } from '@signalbox/broker-core/engine'
import { MultiMap } from '@signalbox/broker-core/internal'
import { Buffer } from 'node:buffer'
import { setImmediate as nextTick } from 'node:timers/promises'

import type { Connection } from './connection.ts'
import { API, isApiError, isForbidden, isTimeout } from './errors.ts'
import { textOf } from './json.ts'
import type { Received } from './large/thread-calls.ts'
import type { Settings } from './options.ts'

/** A message as a stream stores it. */
export interface StoredMessage {
  readonly subject: string
  readonly sequence: number
  /** The time when the server stored it, in milliseconds since the epoch. */
  readonly timestamp: number
  readonly data: Uint8Array
}

type Query =
  | { readonly seq: number }
  | { readonly last_by_subj: string }
  | { readonly seq: number; readonly next_by_subj: string }

/** The status of a direct answer without a message. */
const MESSAGE_NOT_FOUND = 404
const DIRECT_HEADERS = ['Nats-Subject', 'Nats-Sequence', 'Nats-Time-Stamp'] as const

/** The time for a direct answer, in ms. Nothing answers for a stream that was deleted, or that answers no more. */
const DIRECT_MS = 2_000

/** The streams of which a node knows whether they answer directly. */
const MAX_KNOWN = 10_000

/** The maximum number of concurrent requests of one reader. */
const WINDOW = 64
/** The number of the first requests, while the size of the messages is unknown: servers take long for large ones. */
const FIRST_WINDOW = 1
/** The factor by which the number may grow. */
const GROWTH = 8
/** The bytes that concurrent requests may return, judged by the messages before. One message may be larger. */
const WINDOW_BYTES = 1024 * 1024

/** The number of concurrent requests: few for large messages, which a reader may not want all. */
class Window {
  #most = FIRST_WINDOW

  /** Returns the number of the next requests, at least 1. */
  next(wanted: number, left: number): number {
    return Math.min(this.#most, Math.max(1, wanted), left)
  }

  /** Chooses the next number by the messages that arrived. */
  arrived(messages: readonly (StoredMessage | undefined)[]): void {
    let bytes = 1
    for (const message of messages) bytes += message?.data.byteLength ?? 0
    const fitting = Math.floor((WINDOW_BYTES * messages.length) / bytes)
    this.#most = Math.max(1, Math.min(WINDOW, GROWTH * messages.length, fitting))
  }
}

/**
 * Reads single messages of streams. The leader answers, so every message that was acknowledged before is visible. Of a
 * stream without replicas it answers directly: the bytes of the message instead of JSON with base64, which keeps both
 * the server and this node busy for tens of milliseconds if the message is large.
 */
export class StoredMessages {
  readonly #connection: Connection
  /** `false` if streams have replicas, or the user of the connection may not read directly. */
  #readsDirectly: boolean
  /** The streams that were read, and whether they answer directly. */
  readonly #direct = new Map<string, boolean>()
  /** The functions that end the direct reads under way, by stream. */
  readonly #reading = new MultiMap<string, () => void>()
  readonly #requestTimeoutMs: number

  constructor(connection: Connection, { replicas, requestTimeoutMs }: Settings) {
    this.#connection = connection
    this.#requestTimeoutMs = requestTimeoutMs
    this.#readsDirectly = replicas === 1
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE */
  get(stream: string, query: Query): Promise<StoredMessage | undefined> {
    return this.#connection.withSpace(stream, () => this.#get(stream, query))
  }

  async #get(stream: string, query: Query): Promise<StoredMessage | undefined> {
    if (!(await this.#answersDirectly(stream))) return this.#getAsJson(stream, query)
    const answer = await this.#getDirectly(stream, query)
    if (answer === undefined) return this.#getAsJson(stream, query)
    const { headers, data } = answer
    if (headers?.code === MESSAGE_NOT_FOUND) return undefined
    const [subject, sequence, time] = DIRECT_HEADERS.map((name) => headers?.get(name))
    if (!subject || !sequence || !time)
      throw unavailable(`NATS answered ${headers?.description ?? 'without a message'}`)
    return { subject, sequence: Number(sequence), timestamp: millisecondsOf(time), data }
  }

  /** Returns undefined if nothing answers. */
  async #getDirectly(stream: string, query: Query): Promise<Received | undefined> {
    const gone = Promise.withResolvers<undefined>()
    const end = (): void => gone.resolve(undefined)
    this.#reading.add(stream, end)
    try {
      const timeoutMs = Math.min(DIRECT_MS, this.#requestTimeoutMs)
      const subject = `$JS.API.DIRECT.GET.${stream}`
      const asked = this.#connection.read(stream, subject, JSON.stringify(query), timeoutMs)
      return await Promise.race([asked, gone.promise])
    } catch (error) {
      this.#direct.delete(stream)
      if (isForbidden(error)) this.#readsDirectly = false
      else if (!isTimeout(error)) throw error
      return undefined
    } finally {
      this.#reading.delete(stream, end)
    }
  }

  /**
   * Ends the direct reads of a stream that is being deleted, and those to come: nothing would answer them, and each keeps
   * the space of a large message.
   */
  forget(stream: string): void {
    this.#know(stream, false)
    for (const end of this.#reading.get(stream)) end()
  }

  #know(stream: string, isDirect: boolean): void {
    if (this.#direct.size >= MAX_KNOWN) this.#direct.clear()
    this.#direct.set(stream, isDirect)
  }

  /** Streams that an earlier version has created do not answer directly until a node adjusts them at its start. */
  async #answersDirectly(stream: string): Promise<boolean> {
    if (!this.#readsDirectly) return false
    const known = this.#direct.get(stream)
    if (known !== undefined) return known
    const { manager } = this.#connection
    const config = await this.#connection.call(async () => {
      try {
        return (await manager.streams.info(stream)).config
      } catch (error) {
        if (isApiError(error, API.STREAM_NOT_FOUND)) return undefined
        throw error
      }
    })
    if (config === undefined) return false
    // It may have been deleted in the meantime.
    const heard = this.#direct.get(stream)
    if (heard !== undefined) return heard
    const isDirect = config.allow_direct && config.num_replicas === 1
    this.#know(stream, isDirect)
    return isDirect
  }

  async #getAsJson(stream: string, query: Query): Promise<StoredMessage | undefined> {
    const subject = `$JS.API.STREAM.MSG.GET.${stream}`
    const { data: json } = await this.#connection.read(stream, subject, JSON.stringify(query))
    const large = await largeData(json)
    const { message, error }: Answer = large === undefined ? JSON.parse(textOf(json)) : large.rest
    if (message) {
      const { subject, seq, time } = message
      const data = large?.data ?? Buffer.from(message.data ?? '', 'base64')
      return { subject, sequence: seq, timestamp: millisecondsOf(time), data }
    }
    // A deleted stream contains no messages.
    if (error?.err_code === API.MESSAGE_NOT_FOUND || error?.err_code === API.STREAM_NOT_FOUND) return undefined
    return this.#connection.call(() => Promise.reject(new Error(error?.description ?? 'no message and no error')))
  }

  /**
   * Reads messages from `from` on, oldest first, while `take` returns true. Requests several at a time; the
   * server skips gaps.
   */
  async forward(
    stream: string,
    filter: string,
    from: number,
    last: number,
    wanted: number,
    take: (message: StoredMessage) => boolean,
  ): Promise<void> {
    const window = new Window()
    for (let next = from; next <= last;) {
      const count = window.next(wanted, last - next + 1)
      const asked = Array.from({ length: count }, (_, i) => this.get(stream, { seq: next + i, next_by_subj: filter }))
      let reached = next + count - 1
      const messages = await Promise.all(asked)
      window.arrived(messages)
      for (const message of messages) {
        if (!message) return
        if (message.sequence < next) continue
        if (!take(message)) return
        next = message.sequence + 1
        reached = Math.max(reached, message.sequence)
      }
      next = Math.max(next, reached + 1)
    }
  }

  /** Reads messages from `last` down to `first`, newest first, while `take` returns true. */
  async backward(
    stream: string,
    last: number,
    first: number,
    wanted: number,
    take: (message: StoredMessage) => boolean,
  ): Promise<void> {
    const window = new Window()
    for (let next = last; next >= first;) {
      const count = window.next(wanted, next - first + 1)
      const asked = Array.from({ length: count }, (_, i) => this.get(stream, { seq: next - i }))
      const messages = await Promise.all(asked)
      window.arrived(messages)
      for (const message of messages) {
        if (message && !take(message)) return
      }
      next -= count
    }
  }

  /**
   * Returns the first sequence between `first` and `last` that was stored at or after a time; `last + 1` if
   * there is none.
   */
  async sequenceAt(stream: string, filter: string, timestamp: number, first: number, last: number): Promise<number> {
    let low = first
    let high = last + 1
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      const message = await this.get(stream, { seq: middle, next_by_subj: filter })
      if (!message || message.timestamp >= timestamp) high = middle
      else low = message.sequence + 1
    }
    return low
  }
}

interface Answer {
  readonly message?: { readonly subject: string; readonly seq: number; readonly time: string; readonly data?: string }
  readonly error?: { readonly err_code: number; readonly description: string }
}

/** The length of an answer above which its data is decoded in pieces, in bytes. */
const LARGE_ANSWER = 1_048_576

/** The characters of base64 that are decoded at once; each four are three bytes. */
const PIECE = 262_144

const DATA = '"data":"'

/**
 * Returns the data of a large answer, and the answer without it: to parse and decode thirteen megabytes at once blocks
 * the event loop for 40 ms. Undefined for a small answer, or one without data.
 */
async function largeData(bytes: Uint8Array): Promise<{ readonly rest: Answer; readonly data: Uint8Array } | undefined> {
  if (bytes.byteLength < LARGE_ANSWER) return undefined
  const answer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  // No text within the answer contains quotes that are not escaped.
  const start = answer.indexOf(DATA) + DATA.length
  const end = answer.indexOf('"', start)
  if (start < DATA.length || end < start) return undefined
  const rest: Answer = JSON.parse(answer.toString('utf8', 0, start) + answer.toString('utf8', end))
  const data = Buffer.allocUnsafeSlow(Math.ceil(((end - start) * 3) / 4))
  let length = 0
  for (let at = start; at < end; at += PIECE) {
    if (at > start) await nextTick()
    length += data.write(answer.toString('latin1', at, Math.min(at + PIECE, end)), length, 'base64')
  }
  return { rest, data: data.subarray(0, length) }
}

/** Parses a time in whole milliseconds, rounded down: servers send nanoseconds. */
export function millisecondsOf(time: string): number {
  return Date.parse(time.replace(/(\.\d{3})\d+/, '$1'))
}
