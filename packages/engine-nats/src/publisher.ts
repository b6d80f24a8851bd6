import { BrokerError, unavailable } from '@signalbox/broker-core/engine'
import type { ApiError } from '@nats-io/jetstream'
import { JetStreamApiError, PubHeaders } from '@nats-io/jetstream'
import type { Payload } from '@nats-io/transport-node'
import { headers } from '@nats-io/transport-node'
import { setTimeout as pause } from 'node:timers/promises'

import type { Connection } from './connection.ts'
import { API, isNoResponders } from './errors.ts'
import { hash } from './subjects.ts'

export interface PublishOptions {
  /** The servers drop a second message with the same id to the same stream within its window. */
  readonly messageId?: string
  /** Only if the last message of the subject has this sequence; 0 is none. */
  readonly expectLastOfSubject?: number
  /** The servers remove it after so many seconds; only for streams that allow it. */
  readonly ttlSeconds?: number
}

export interface Published {
  readonly sequence: number
  readonly duplicate: boolean
}

/**
 * A message id for a write that expects the last message of its subject to be `expected`. Replicated streams of server
 * 2.9 check the expectation before they agree on an order, so that several writers at once may all pass; by this id
 * all but the first in order are duplicates.
 */
export function claimOf(subject: string, expected: number): string {
  return `claim.${hash(subject)}.${expected}`
}

/** The stream that a publish went to is gone. */
export class StreamGone extends Error {}

const MAX_OUTSTANDING = 2_048
const MAX_OUTSTANDING_BYTES = 64 * 1024 * 1024

/** Before a message is sent again whose id is just being stored, in milliseconds. */
const IN_PROCESS_MS = 10

/** Headers and subject beside a payload. */
const OVERHEAD_BYTES = 512

/** What a message may grow by on its way to a dead-letter queue: three tags, and a longer name of the channel (C1, C2). */
const DEAD_LETTER_BYTES = 1_024

interface Acknowledgement {
  readonly seq: number
  readonly duplicate?: boolean
  readonly error?: ApiError
}

/** Publishes to streams, many at the same time but not without bound: who publishes more waits for acknowledgements. */
export class Publisher {
  readonly #connection: Connection
  readonly #timeoutMs: number
  readonly #waiting: (() => void)[] = []
  #outstanding = 0
  #bytes = 0

  constructor(connection: Connection, timeoutMs: number) {
    this.#connection = connection
    this.#timeoutMs = timeoutMs
  }

  /** Resolves when the message is stored. @throws StreamGone, BrokerError MESSAGE_TOO_LARGE, ENGINE_UNAVAILABLE */
  async publish(
    subject: string,
    payload: Uint8Array,
    options: PublishOptions = {},
    translate: (error: unknown) => unknown = () => undefined,
  ): Promise<Published> {
    this.assertFits(payload)
    while (this.#outstanding >= MAX_OUTSTANDING || this.#bytes >= MAX_OUTSTANDING_BYTES) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.push(resolve)
      await promise
    }
    this.#outstanding++
    this.#bytes += payload.byteLength
    try {
      return await this.#connection.call(
        () => this.#settled(subject, payload, options),
        (error) => (isNoResponders(error) ? new StreamGone() : translate(error)),
      )
    } finally {
      this.#outstanding--
      this.#bytes -= payload.byteLength
      this.#waiting.shift()?.()
    }
  }

  /** Of several with one id at once, newer servers take only the first until it is stored, or is not. */
  async #settled(subject: string, payload: Payload, options: PublishOptions): Promise<Published> {
    for (const until = Date.now() + this.#timeoutMs; ;) {
      const published = await this.#request(subject, payload, options)
      if (published) return published
      if (Date.now() >= until) throw unavailable('a message with the same id is being stored')
      await pause(IN_PROCESS_MS)
    }
  }

  /** Undefined while it is not known whether another one with its id is stored. */
  async #request(
    subject: string,
    payload: Payload,
    { messageId, expectLastOfSubject, ttlSeconds }: PublishOptions,
  ): Promise<Published | undefined> {
    const timeout = this.#timeoutMs
    const sent = { timeout, headers: headers() }
    if (messageId !== undefined) sent.headers.set(PubHeaders.MsgIdHdr, messageId)
    if (expectLastOfSubject !== undefined) {
      sent.headers.set(PubHeaders.ExpectedLastSubjectSequenceHdr, String(expectLastOfSubject))
    }
    if (ttlSeconds !== undefined) sent.headers.set(PubHeaders.MessageTTL, String(ttlSeconds))
    const plain = messageId === undefined && expectLastOfSubject === undefined && ttlSeconds === undefined
    const answer = await this.#connection.nc.request(subject, payload, plain ? { timeout } : sent)
    const { seq, duplicate, error } = answer.json<Acknowledgement>()
    // Server 2.15 refuses, 2.10 names no sequence.
    if (error?.err_code === API.DUPLICATE_IN_PROCESS || (duplicate === true && seq === 0)) return undefined
    if (error) throw new JetStreamApiError(error)
    return { sequence: seq, duplicate: duplicate === true }
  }

  /** @throws BrokerError MESSAGE_TOO_LARGE */
  assertFits(payload: Uint8Array): void {
    this.assertFitsBytes(payload.byteLength)
  }

  /**
   * As {@link assertFits}, for a message that may move to a dead-letter queue: with the tags that it gets there.
   * @throws BrokerError MESSAGE_TOO_LARGE
   */
  assertFitsDeadLetter(payload: Uint8Array): void {
    const limit = this.#connection.maxPayload - OVERHEAD_BYTES
    const bytes = payload.byteLength + DEAD_LETTER_BYTES
    if (bytes <= limit) return
    throw new BrokerError(
      'MESSAGE_TOO_LARGE',
      `the message takes ${payload.byteLength} bytes, and ${DEAD_LETTER_BYTES} bytes are kept for its tags in the dead-letter queue; the NATS servers take ${limit} (max_payload)`,
      { bytes, limit },
    )
  }

  /** As {@link assertFits}, for what is not encoded yet. */
  assertFitsBytes(bytes: number): void {
    const limit = this.#connection.maxPayload - OVERHEAD_BYTES
    if (bytes <= limit) return
    throw new BrokerError(
      'MESSAGE_TOO_LARGE',
      `the message takes ${bytes} bytes; the NATS servers take ${limit} (max_payload)`,
      { bytes, limit },
    )
  }
}
