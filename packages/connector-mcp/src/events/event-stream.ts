import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

import type { BrokerHandle, Message, StoredEvent, Subscription } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import type { JsonRpcError, SseStream } from '@signalbox/http-kit'
import { isoTime } from '@signalbox/http-kit/internal'

import type { EventsNotification } from '../wire/events-profile.ts'
import { eventsNotification } from '../wire/events-profile.ts'
import type { EventLog, EventPosition, EventStart } from './event-log.ts'
import { cursorOf, positionAfter } from './event-log.ts'
import type { SelectedEvents } from './event-selection.ts'
import { actionFor, occurrenceOf } from './event-types.ts'

/** The interval at which a stream looks for waiting messages of a queue, in ms. */
const QUEUE_MS = 1_000

/** The parts that a stream of events needs. */
export interface EventStreamParts {
  readonly broker: BrokerHandle
  readonly system: BrokerHandle
  readonly heartbeatMs: number
  /** Returns the error of the protocol for a failure. */
  readonly errorOf: (error: unknown) => JsonRpcError
  readonly failed: (error: unknown) => void
  /** Called when the server has ended the events; the stream is still open. */
  readonly over: () => void
}

/** The events of one `events/stream`, from a position on. */
export class EventStream {
  readonly #id: string
  readonly #events: SelectedEvents
  readonly #parts: EventStreamParts
  readonly #ended = new AbortController()
  #stream: SseStream | undefined
  #heartbeat: NodeJS.Timeout | undefined
  /** The position after the last sent entry of an events store. */
  #position: EventPosition | undefined

  /** @param id The source text of the id of the request */
  constructor(id: string, events: SelectedEvents, parts: EventStreamParts) {
    this.#id = id
    this.#events = events
    this.#parts = parts
  }

  /**
   * Sends the events until the stream or the permission ends.
   * @param start The first entry of an events store; `undefined` for other channels
   */
  open(stream: SseStream, start: EventStart | undefined, log: EventLog): void {
    this.#stream = stream
    this.#position = start?.position
    stream.onEnd(() => this.close())
    const heartbeat = setInterval(() => {
      if (!stream.blocked) this.#send({ kind: 'heartbeat', cursor: this.#cursor() })
    }, this.#parts.heartbeatMs)
    heartbeat.unref()
    this.#heartbeat = heartbeat
    this.#run(start, log).then(
      () => this.#terminate(undefined),
      (error: unknown) => this.#terminate(error),
    )
  }

  close(): void {
    clearInterval(this.#heartbeat)
    this.#ended.abort()
  }

  async #run(start: EventStart | undefined, log: EventLog): Promise<void> {
    const { type } = this.#events
    if (type.channelType === 'queues') return this.#hints()
    const subscription = start === undefined ? await this.#live() : await this.#stored(start, log)
    const error = await subscription.closed
    if (error !== undefined) throw error
  }

  async #stored(start: EventStart, log: EventLog): Promise<Subscription> {
    const { broker } = this.#parts
    const { channel, type } = this.#events
    const { signal } = this.#ended
    this.#active(start.truncated)
    const from = { from: 'sequence', sequence: start.position.next } as const
    return broker.eventsStore.subscribe(channel, from, { signal }, async (event) => {
      if (!this.#permitted()) return
      await this.#reportGap(event, log)
      const position = positionAfter(event)
      this.#position = position
      const occurrence = event.tombstone ? undefined : occurrenceOf(type, event, cursorOf(channel, position))
      if (occurrence === undefined) return
      this.#send({ kind: 'event', occurrence })
      // The store keeps the next events for a slow reader.
      await this.#stream?.drained()
    })
  }

  /** Reports entries that retention removed before this stream reached them. A compacted store has other gaps. */
  async #reportGap({ sequence }: StoredEvent, log: EventLog): Promise<void> {
    const expected = this.#position?.next ?? 1
    // The sequences of a channel that was created again start at 1.
    if (sequence < expected || (sequence > expected && (await log.hasLost(expected)))) {
      this.#position = { next: sequence, mark: '' }
      this.#active(true)
    }
  }

  async #live(): Promise<Subscription> {
    const { broker } = this.#parts
    const { channel, type } = this.#events
    let early: Message[] | undefined = []
    const deliver = (message: Message): void => {
      const occurrence = this.#permitted() ? occurrenceOf(type, message, null) : undefined
      if (occurrence !== undefined) this.#send({ kind: 'event', occurrence })
    }
    const subscription = await broker.events.subscribe(channel, { signal: this.#ended.signal }, (message) => {
      if (early === undefined) deliver(message)
      else early.push(message)
    })
    // The client may rely on each event after this message.
    this.#active(false)
    for (const message of early) deliver(message)
    early = undefined
    return subscription
  }

  /** Sends a hint when the queue has messages, and again when it gets more. */
  async #hints(): Promise<void> {
    this.#active(false)
    const { channel, type } = this.#events
    const { signal } = this.#ended
    let hinted: number | undefined
    while (!signal.aborted && this.#permitted()) {
      const { waiting, incoming } = await this.#queue()
      if (waiting > 0 && incoming !== hinted) {
        const eventId = createHash('sha256').update(`${channel} ${incoming}`).digest('base64url').slice(0, 22)
        const data = { channel, waiting }
        const occurrence = { eventId, name: type.name, timestamp: isoTime(Date.now()), data, cursor: null }
        this.#send({ kind: 'event', occurrence })
      }
      hinted = incoming
      await pause(QUEUE_MS, signal)
    }
  }

  async #queue(): Promise<{ readonly waiting: number; readonly incoming: number }> {
    try {
      const { incoming, queue } = await this.#parts.system.channels.info('queues', this.#events.channel)
      return { waiting: queue?.waiting ?? 0, incoming }
    } catch (error) {
      if (isBrokerError(error, 'CHANNEL_NOT_FOUND')) return { waiting: 0, incoming: 0 }
      if (!isBrokerError(error, 'ENGINE_UNAVAILABLE')) throw error
      this.#send({ kind: 'error', error: this.#parts.errorOf(error) })
      return { waiting: 0, incoming: 0 }
    }
  }

  /** Checks the policy before each event. Ends the stream if it does not permit the event. */
  #permitted(): boolean {
    const { type, channel } = this.#events
    if (this.#ended.signal.aborted) return false
    try {
      this.#parts.broker.authorize(actionFor(type, 'push'), type.channelType, channel)
      return true
    } catch (error) {
      this.#terminate(error)
      return false
    }
  }

  #active(truncated: boolean): void {
    this.#send({ kind: 'active', cursor: this.#cursor(), truncated })
  }

  #cursor(): string | null {
    return this.#position === undefined ? null : cursorOf(this.#events.channel, this.#position)
  }

  #send(notification: EventsNotification): void {
    this.#stream?.write({ event: 'message', data: eventsNotification(this.#id, notification) })
  }

  /** Ends the events, with the reason if it is an error. */
  #terminate(reason: unknown): void {
    if (this.#ended.signal.aborted) return
    const error = reason === undefined ? undefined : this.#parts.errorOf(reason)
    if (error !== undefined) {
      if (error.cause !== undefined) this.#parts.failed(error.cause)
      this.#send({ kind: 'terminated', error })
    }
    this.close()
    this.#parts.over()
  }
}

/** Resolves after a time, or when the signal is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return delay(ms, undefined, { signal, ref: false }).catch(() => {})
}
