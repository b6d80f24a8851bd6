import type { EncodedQueueMessage, QueueSend, SendResult } from '@signalbox/broker-core/engine'
import {
  BrokerError,
  decodeQueueMessage,
  encodeQueueMessage,
  groupOf,
  isBrokerError,
  isDeadLetter,
  messageSize,
  queueLimitsOf,
  retryLimits,
  unavailable,
} from '@signalbox/broker-core/engine'
import { createHash } from 'node:crypto'

import type { StoredChannel } from '../channels/channel-bucket.ts'
import { API, isApiError } from '../errors.ts'
import type { Parts } from '../parts.ts'
import type { Published } from '../publisher.ts'
import { encodedAgain, StreamGone } from '../publisher.ts'
import { GROUP_PARTITIONS, MAX_DELAYED } from '../streams.ts'
import { hash } from '../subjects.ts'
import type { QueueGauges } from './queue-gauges.ts'

/** The result of {@link QueueSender.store}. */
interface Stored extends Published {
  readonly channel: StoredChannel
}

const TRIES = 3

/**
 * The approximate size of a stored message without body, metadata and tags: the head of its record, and its
 * subject.
 */
const STORED_BYTES = 220

/** Sends messages to queues. */
export class QueueSender {
  readonly #parts: Parts
  readonly #gauges: QueueGauges
  /** Batches to one queue run one after the other, so that each checks the limits alone. */
  readonly #batches = new Map<string, Promise<unknown>>()

  constructor(parts: Parts, gauges: QueueGauges) {
    this.#parts = parts
    this.#gauges = gauges
  }

  async send(name: string, message: QueueSend): Promise<SendResult> {
    this.#assertTimes([message])
    await this.#prepare(name, [message])
    const channel = this.#parts.storedChannels.get('queues', name)
    if (channel && this.#parts.streams.isLooser(channel)) await this.#assertRoom(name, [message])
    const record = toRecord(message, Date.now())
    if (record.dueAt > 0) await this.#assertRoomForDelayed(name, 1)
    const stored = await this.store(name, record, record.origin)
    return this.#result(stored, record, message)
  }

  /**
   * Refuses times while the clock of this node is wrong, because every node acts on them. @throws
   * BrokerError ENGINE_UNAVAILABLE
   */
  #assertTimes(messages: readonly QueueSend[]): void {
    if (messages.some(({ delayMs, expirationMs }) => delayMs > 0 || expirationMs > 0)) this.#parts.clock.assertRight()
  }

  /**
   * Creates the queue first, so that delay and expiry do not start before; not for messages that are too
   * large.
   */
  async #prepare(name: string, messages: readonly QueueSend[]): Promise<void> {
    const { storedChannels } = this.#parts
    if (storedChannels.get('queues', name)) return
    for (const message of messages) this.#encode(name, toRecord(message, Date.now()))
    await storedChannels.ensure('queues', name)
  }

  async #result(
    { channel, sequence, duplicate }: Stored,
    record: EncodedQueueMessage,
    message: QueueSend,
  ): Promise<SendResult> {
    const { deduplicationId, id } = message
    if (duplicate && deduplicationId !== undefined) {
      return { id: (await this.#firstId(channel, sequence, deduplicationId)) ?? id, sequence, duplicate }
    }
    this.#parts.counterTable.received(channel.incarnation, 1, messageSize(message))
    this.#gauges.sent(channel, record)
    if (deduplicationId !== undefined) {
      // The message may be gone when its id is needed.
      await this.#parts.recent.put(this.#parts.subjects.recent(channel.incarnation, deduplicationId), id)
    }
    return { id, sequence, duplicate: false }
  }

  async #firstId(channel: StoredChannel, sequence: number, deduplicationId: string): Promise<string | undefined> {
    const first = await this.#parts.messages.get(channel.stream, { seq: sequence })
    const record = first && decodeQueueMessage(first.data)
    if (record) return record.message.id
    return (await this.#parts.recent.get(this.#parts.subjects.recent(channel.incarnation, deduplicationId)))?.text
  }

  /**
   * Encodes a message for its stream. Checks that a message with a dead-letter queue fits there too. @throws
   * BrokerError MESSAGE_TOO_LARGE
   */
  #encode(name: string, record: EncodedQueueMessage): Uint8Array {
    const { channelSettings } = this.#parts
    const { maxReceiveCount, deadLetterQueue } = channelSettings.active
      ? retryLimits(channelSettings, {
          ...record,
          channel: name,
          receiveCount: 0,
          isDeadLetter: isDeadLetter(record.message.tags),
        })
      : record
    const payload = encodeQueueMessage(name, record)
    if (maxReceiveCount > 0 && deadLetterQueue !== '') this.#parts.publisher.assertFitsDeadLetter(payload)
    else this.#parts.publisher.assertFits(payload)
    return payload
  }

  /**
   * Stores a record. Creates the queue if it does not exist.
   * @throws BrokerError QUEUE_FULL, CHANNEL_LIMIT, MESSAGE_TOO_LARGE, ENGINE_UNAVAILABLE
   */
  async store(name: string, record: EncodedQueueMessage, messageId: string | undefined): Promise<Stored> {
    const encode = encodedAgain(this.#encode(name, record), () => this.#encode(name, record))
    let swept = false
    for (let tries = 0; tries < TRIES; tries++) {
      const channel = await this.#parts.storedChannels.ensure('queues', name)
      const { dueAt, expiresAt } = record
      const subject = this.#parts.subjects.queueMessage(
        channel.incarnation,
        dueAt,
        expiresAt,
        this.#partition(name, record),
      )
      try {
        return { ...(await this.#publish(channel, subject, encode, record, messageId)), channel }
      } catch (error) {
        // Expired messages do not count towards the limits.
        if (isBrokerError(error, 'QUEUE_FULL') && !swept && (await this.#gauges.sweep(channel)) > 0) swept = true
        else if (!(error instanceof StreamGone)) throw error
        else await this.#parts.storedChannels.settle('queues', name, channel)
      }
    }
    throw unavailable('other nodes create and delete the queue at the same time')
  }

  /** Returns the partition of a message's group; undefined if it has none, or if the queue has no groups. */
  #partition(name: string, { message }: EncodedQueueMessage): number | undefined {
    const { channelSettings } = this.#parts
    if (!channelSettings.active || channelSettings.of('queues', name).groups === undefined) return undefined
    const group = groupOf(message.tags)
    return group === '' ? undefined : createHash('sha256').update(group).digest().readUInt8(0) % GROUP_PARTITIONS
  }

  async #publish(
    channel: StoredChannel,
    subject: string,
    encode: () => Uint8Array,
    { expiresAt }: EncodedQueueMessage,
    messageId: string | undefined,
  ): Promise<Published> {
    const { publisher, features, settings } = this.#parts
    const ttlSeconds = features.messageTtl ? timeToLive(expiresAt, Date.now(), settings.expiredKeptMs) : undefined
    const translate = (error: unknown): unknown => {
      if (isApiError(error, API.TTL_DISABLED)) return error
      if (!isApiError(error, API.STREAM_STORE_FAILED)) return undefined
      const exceeded = /maximum (messages|bytes)/.exec(error.message)?.[1]
      return exceeded === undefined ? undefined : this.#full(channel.name, exceeded === 'bytes' ? 'bytes' : 'messages')
    }
    const options = { channel: channel.incarnation, messageId }
    if (ttlSeconds === undefined) return publisher.publish(subject, encode, options, translate)
    try {
      return await publisher.publish(subject, encode, { ...options, ttlSeconds }, translate)
    } catch (error) {
      // An older server created the stream, and no node has updated it yet.
      if (!isApiError(error, API.TTL_DISABLED)) throw error
      return publisher.publish(subject, encode, options, translate)
    }
  }

  #limitsOf(name: string): ReturnType<typeof queueLimitsOf> {
    const { channelSettings, settings } = this.#parts
    return queueLimitsOf(channelSettings, name, settings)
  }

  #full(name: string, exceeded: 'messages' | 'bytes'): BrokerError {
    const { limit, setting } = this.#limitsOf(name)[exceeded]
    const allowed = `${limit} ${exceeded} (${setting})`
    return new BrokerError(
      'QUEUE_FULL',
      `the queue ${JSON.stringify(name)} is full: it holds at most ${allowed}; receive or purge messages, or raise the limit`,
      {
        channel: name,
        limit,
      },
    )
  }

  /**
   * Sends all messages or none. Refuses a batch that does not fit before anything is stored, and removes the
   * stored messages if one fails. If the node dies in between, the first messages remain, unacknowledged.
   */
  async sendBatch(name: string, messages: readonly QueueSend[]): Promise<readonly SendResult[]> {
    const before = this.#batches.get(name) ?? Promise.resolve()
    const sent = before.then(() => this.#sendBatch(name, messages))
    const settled = sent.catch(() => {})
    this.#batches.set(name, settled)
    try {
      return await sent
    } finally {
      if (this.#batches.get(name) === settled) this.#batches.delete(name)
    }
  }

  async #sendBatch(name: string, messages: readonly QueueSend[]): Promise<readonly SendResult[]> {
    this.#assertTimes(messages)
    await this.#assertRoom(name, messages)
    await this.#prepare(name, messages)
    const now = Date.now()
    const records = messages.map((message) => toRecord(message, now))
    for (const record of records) this.#encode(name, record)
    const delayed = records.filter(({ dueAt }) => dueAt > 0).length
    if (delayed > 0) await this.#assertRoomForDelayed(name, delayed)
    const outcomes = await Promise.allSettled(records.map((record) => this.store(name, record, record.origin)))
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed) {
      await this.#removeStored(outcomes)
      throw failed.reason
    }
    const results: Promise<SendResult>[] = []
    for (const [i, outcome] of outcomes.entries()) {
      const [record, message] = [records[i], messages[i]]
      if (outcome.status === 'fulfilled' && record && message) {
        results.push(this.#result(outcome.value, record, message))
      }
    }
    return Promise.all(results)
  }

  async #removeStored(outcomes: readonly PromiseSettledResult<Stored>[]): Promise<void> {
    const { connection } = this.#parts
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected' || outcome.value.duplicate) continue
      const { channel, sequence } = outcome.value
      await connection.call(() => connection.manager.streams.deleteMessage(channel.stream, sequence)).catch(() => {})
    }
  }

  /** @throws BrokerError QUEUE_FULL */
  async #assertRoom(name: string, messages: readonly QueueSend[]): Promise<void> {
    const { messages: maxMessages, bytes: maxBytes } = this.#limitsOf(name)
    const [queueMaxMessages, queueMaxBytes] = [maxMessages.limit, maxBytes.limit]
    if (queueMaxMessages === 0 && queueMaxBytes === 0) return
    const known = this.#parts.storedChannels.get('queues', name)
    const state = known && (await this.#gauges.read(known))
    const bytes = messages.reduce((sum, message) => sum + messageSize(message) + STORED_BYTES, 0)
    // Messages with ids that were sent before need no space; their number is known only afterwards.
    const sure = messages.filter(({ deduplicationId }) => deduplicationId === undefined).length
    if (queueMaxMessages > 0 && (state?.messages ?? 0) + sure > queueMaxMessages) throw this.#full(name, 'messages')
    if (queueMaxBytes > 0 && (state?.bytes ?? 0) + bytes > queueMaxBytes) throw this.#full(name, 'bytes')
  }

  /** @throws BrokerError QUEUE_FULL */
  async #assertRoomForDelayed(name: string, count: number): Promise<void> {
    const channel = this.#parts.storedChannels.get('queues', name)
    if (!channel || (await this.#gauges.delayedAbout(channel)) + count <= MAX_DELAYED) return
    throw new BrokerError(
      'QUEUE_FULL',
      `the queue ${JSON.stringify(name)} is full: it holds at most ${MAX_DELAYED} delayed messages; send without a delay, or try again later`,
      { channel: name, limit: MAX_DELAYED },
    )
  }
}

/** Returns a message that is sent now as its stream stores it. */
export function toRecord(message: QueueSend, now: number): EncodedQueueMessage {
  const { delayMs, expirationMs, maxReceiveCount, deadLetterQueue, deduplicationId } = message
  return {
    message,
    dueAt: delayMs > 0 ? now + delayMs : 0,
    expiresAt: expirationMs > 0 ? now + expirationMs : 0,
    maxReceiveCount,
    deadLetterQueue,
    origin: deduplicationId === undefined ? undefined : hash(deduplicationId),
  }
}

/** Servers count nanoseconds since 1970 in 63 bits. Expiries beyond a hundred years are left to the nodes. */
const MAX_SECONDS = 100 * 365 * 24 * 3_600

/**
 * Returns the time for which the servers keep a message that no node removes, in whole seconds: until its
 * expiry, and `keptMs` longer for a client that may still hold it. Returns undefined for a message that does
 * not expire.
 */
export function timeToLive(expiresAt: number, now: number, keptMs: number): number | undefined {
  if (expiresAt === 0) return undefined
  const seconds = Math.max(1, Math.ceil((expiresAt - now + keptMs) / 1_000))
  return seconds > MAX_SECONDS ? undefined : seconds
}
