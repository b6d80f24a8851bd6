import { BrokerError, unavailable } from '@signalbox/broker-core/engine'
import type { ApiError } from '@nats-io/jetstream'
import { JetStreamApiError, PubHeaders } from '@nats-io/jetstream'
import { setTimeout as pause } from 'node:timers/promises'

import type { Connection } from './connection.ts'
import { API, isNoResponders } from './errors.ts'
import { textOf } from './json.ts'
import { hash } from './subjects.ts'

interface PublishOptions {
  /** The key of the channel whose messages keep their order. Only messages of a channel may be large. */
  readonly channel?: string
  /** The deduplication id: within its window the stream ignores a second message with the same id. */
  readonly messageId?: string | undefined
  /** The expected sequence of the subject's last message; 0 expects that there is none. */
  readonly expectLastOfSubject?: number
  /** The time after which the servers remove the message, in seconds; only for streams that allow it. */
  readonly ttlSeconds?: number | undefined
}

export interface Published {
  readonly sequence: number
  readonly duplicate: boolean
}

/**
 * Returns a message id for a write that expects the last message of its subject to be `expected`. Replicated
 * streams of server 2.9 check the expectation before they agree on an order, so several concurrent writes
 * may all pass; with this id all but the first are duplicates.
 */
export function claimOf(subject: string, expected: number): string {
  return `claim.${hash(subject)}.${expected}`
}

/** The stream of a publish does not exist any more. */
export class StreamGone extends Error {}

const MAX_OUTSTANDING = 2_048
const MAX_OUTSTANDING_BYTES = 64 * 1024 * 1024

/** The pause before a message is sent again whose id is being stored, in milliseconds. */
const IN_PROCESS_MS = 10

/** The maximum size of headers and subject of a message. */
const OVERHEAD_BYTES = 512

/**
 * The bytes by which a message may grow on its way to a dead-letter queue: three tags, and a longer name of
 * the channel (C1, C2).
 */
const DEAD_LETTER_BYTES = 1_024

interface Acknowledgement {
  readonly seq: number
  readonly duplicate?: boolean
  readonly error?: ApiError
}

/** Publishes to one channel that are under way on the same connection. */
interface Phase {
  readonly isLarge: boolean
  readonly after: Promise<void> | undefined
  readonly ended: PromiseWithResolvers<void>
  count: number
}

/**
 * Keeps the order of the messages of a channel that use two connections. A large message waits for the small ones before
 * it. Small ones that follow it use its connection as well, until none is under way.
 */
export class PublishOrder {
  readonly #last = new Map<string, Phase>()

  /**
   * @param isOpen `false` while the connection for large messages is lost: then nothing more may follow on it
   * @param publish Publishes on the connection for large messages, or on that for small ones
   */
  async run<T>(
    channel: string,
    { isLarge, isOpen }: { readonly isLarge: boolean; readonly isOpen: boolean },
    publish: (isLarge: boolean) => Promise<T>,
  ): Promise<T> {
    const phase = this.#phase(channel, isLarge, isOpen)
    phase.count++
    try {
      if (phase.after) await phase.after
      return await publish(phase.isLarge)
    } finally {
      if (--phase.count === 0) {
        phase.ended.resolve()
        if (this.#last.get(channel) === phase) this.#last.delete(channel)
      }
    }
  }

  #phase(channel: string, isLarge: boolean, isOpen: boolean): Phase {
    const last = this.#last.get(channel)
    if (last && (last.isLarge ? isOpen : !isLarge)) return last
    const phase: Phase = { isLarge, after: last?.ended.promise, ended: Promise.withResolvers(), count: 0 }
    this.#last.set(channel, phase)
    return phase
  }
}

/**
 * Returns a function that encodes a message each time that it is sent. The first call returns `first`, which was encoded to
 * know its size.
 */
export function encodedAgain(first: Uint8Array, encode: () => Uint8Array): () => Uint8Array {
  let next: Uint8Array | undefined = first
  return () => {
    const now = next ?? encode()
    next = undefined
    return now
  }
}

/**
 * Publishes to streams. Limits the number of concurrent publishes; more of them wait for acknowledgements.
 */
export class Publisher {
  readonly #connection: Connection
  readonly #timeoutMs: number
  readonly #order = new PublishOrder()
  readonly #waiting: (() => void)[] = []
  #outstanding = 0
  #bytes = 0

  constructor(connection: Connection, timeoutMs: number) {
    this.#connection = connection
    this.#timeoutMs = timeoutMs
  }

  /**
   * Resolves when the message is stored.
   * @param content The message, or with `options.channel` a function that encodes it: a large message moves to the
   * connection for such messages, and is encoded again if it is sent again
   * @throws StreamGone
   * @throws BrokerError MESSAGE_TOO_LARGE, ENGINE_UNAVAILABLE
   */
  async publish(
    subject: string,
    content: Uint8Array | (() => Uint8Array),
    options: PublishOptions = {},
    translate: (error: unknown) => unknown = () => undefined,
  ): Promise<Published> {
    const encode = typeof content === 'function' ? content : () => content
    const payload = encode()
    const bytes = payload.byteLength
    this.assertFitsBytes(bytes)
    while (this.#outstanding >= MAX_OUTSTANDING || this.#bytes >= MAX_OUTSTANDING_BYTES) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.push(resolve)
      await promise
    }
    this.#outstanding++
    this.#bytes += bytes
    try {
      return await this.#connection.call(
        () => this.#ordered(subject, encodedAgain(payload, encode), bytes, options),
        (error) => (isNoResponders(error) ? new StreamGone() : translate(error)),
      )
    } finally {
      this.#outstanding--
      this.#bytes -= bytes
      this.#waiting.shift()?.()
    }
  }

  #ordered(subject: string, encode: () => Uint8Array, bytes: number, options: PublishOptions): Promise<Published> {
    const { large } = this.#connection
    const isLarge = options.channel !== undefined && large.takes(bytes)
    if (options.channel === undefined || !large.isStarted) return this.#settled(subject, encode, options, false)
    const way = { isLarge, isOpen: large.isOpen }
    return this.#order.run(options.channel, way, (asLarge) => this.#settled(subject, encode, options, asLarge))
  }

  /**
   * Newer servers accept only the first of several messages with the same id, until it is stored or has
   * failed.
   */
  async #settled(
    subject: string,
    encode: () => Uint8Array,
    options: PublishOptions,
    asLarge: boolean,
  ): Promise<Published> {
    for (const until = Date.now() + this.#timeoutMs; ;) {
      const published = await this.#request(subject, encode(), options, asLarge)
      if (published) return published
      if (Date.now() >= until) throw unavailable('a message with the same id is being stored')
      await pause(IN_PROCESS_MS)
    }
  }

  /** Resolves with undefined while the outcome of another message with the same id is unknown. */
  async #request(
    subject: string,
    payload: Uint8Array,
    { messageId, expectLastOfSubject, ttlSeconds }: PublishOptions,
    asLarge: boolean,
  ): Promise<Published | undefined> {
    const headers: [string, string][] = []
    if (messageId !== undefined) headers.push([PubHeaders.MsgIdHdr, messageId])
    if (expectLastOfSubject !== undefined) {
      headers.push([PubHeaders.ExpectedLastSubjectSequenceHdr, String(expectLastOfSubject)])
    }
    if (ttlSeconds !== undefined) headers.push([PubHeaders.MessageTTL, String(ttlSeconds)])
    const sent = { timeoutMs: this.#timeoutMs, headers }
    const { data } = await (asLarge
      ? this.#connection.large.request(subject, payload, sent)
      : this.#connection.exchange(subject, payload, sent))
    const { seq, duplicate, error }: Acknowledgement = JSON.parse(textOf(data))
    // Server 2.15 refuses the message, 2.10 reports no sequence.
    if (error?.err_code === API.DUPLICATE_IN_PROCESS || (duplicate === true && seq === 0)) return undefined
    if (error) throw new JetStreamApiError(error)
    return { sequence: seq, duplicate: duplicate === true }
  }

  /** @throws BrokerError MESSAGE_TOO_LARGE */
  assertFits(payload: Uint8Array): void {
    this.assertFitsBytes(payload.byteLength)
  }

  /**
   * Like {@link assertFits}, for a message that may move to a dead-letter queue: includes the tags that it
   * gets there.
   * @throws BrokerError MESSAGE_TOO_LARGE
   */
  assertFitsDeadLetter(payload: Uint8Array): void {
    const limit = this.#connection.maxPayload - OVERHEAD_BYTES
    const bytes = payload.byteLength + DEAD_LETTER_BYTES
    if (bytes <= limit) return
    throw new BrokerError(
      'MESSAGE_TOO_LARGE',
      `the message has ${payload.byteLength} bytes, and ${DEAD_LETTER_BYTES} bytes are reserved for its tags in the dead-letter queue; the NATS servers accept at most ${limit} (max_payload). Send a smaller message, or raise max_payload`,
      { bytes, limit },
    )
  }

  /** Returns whether the servers accept a message with so many bytes. */
  fits(bytes: number): boolean {
    return bytes <= this.#connection.maxPayload - OVERHEAD_BYTES
  }

  /** Like {@link assertFits}, for a message that is not encoded yet. */
  assertFitsBytes(bytes: number): void {
    const limit = this.#connection.maxPayload - OVERHEAD_BYTES
    if (bytes <= limit) return
    throw new BrokerError(
      'MESSAGE_TOO_LARGE',
      `the message has ${bytes} bytes; the NATS servers accept at most ${limit} (max_payload). Send a smaller message, or raise max_payload`,
      { bytes, limit },
    )
  }
}
