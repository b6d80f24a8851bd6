import type { Socket } from 'node:net'

import { isReservedChannel } from '@signalbox/broker-core'
import type { Broker, BrokerObserver, Caller, ChannelType, OutgoingMessage } from '@signalbox/broker-core'
import type { WebSocket } from 'ws'

import { Batch, Gap } from './monitored-messages.ts'
import { Monitor } from './monitor.ts'
import type { Direction, MonitorFilter, Sighting } from './monitored-messages.ts'

export interface MonitorsOptions {
  /** The most monitors open at the same time. @default 1000 */
  readonly maxMonitors?: number
  /** The most bytes that may wait for one reader. @default 1048576 */
  readonly maxBufferedBytes?: number
  /**
   * The time between pings, in ms. A reader that has neither read nor answered since the previous
   * ping is cut off. @default 30000
   */
  readonly pingMs?: number
}

/**
 * The most messages, and bytes of their bodies, that wait to be shown; further ones are dropped for
 * all monitors.
 */
const MAX_WAITING = 4_096
const MAX_WAITING_BYTES = 16 * 1024 * 1024

/** The most bytes that may wait for all readers. They share this limit equally. */
const MAX_BUFFERED_BYTES = 256 * 1024 * 1024

/** The longest time for which showing messages blocks the event loop, in ms. */
const TURN_MS = 4

/** The number of messages shown together: one write for each monitor. */
const BATCH = 64

/**
 * The open monitors. The messaging path only adds a message to a bounded list, and does nothing
 * while no monitor is open. Filtering, serializing and sending happen later, for a few milliseconds
 * at a time.
 */
export class Monitors {
  readonly #maxMonitors: number
  readonly #maxBufferedBytes: number
  readonly #pingMs: number
  readonly #monitors = new Set<Monitor>()
  readonly #observer: BrokerObserver = {
    accepted: (type, channel, caller, message) => this.#see('in', type, channel, caller, message),
    delivered: (type, channel, caller, message) => this.#see('out', type, channel, caller, message),
  }
  #waiting: (Sighting | Gap)[] = []
  #waitingBytes = 0
  #work: Iterator<void> | undefined
  #turn: NodeJS.Immediate | undefined
  #pings: NodeJS.Timeout | undefined
  #broker: Broker | undefined
  #unobserve: (() => void) | undefined
  #whenEmpty: (() => void) | undefined
  #closing: Promise<void> | undefined
  /** True while no reader reads: messages are only counted. */
  #resting = false

  constructor({ maxMonitors = 1_000, maxBufferedBytes = 1_048_576, pingMs = 30_000 }: MonitorsOptions = {}) {
    this.#maxMonitors = maxMonitors
    this.#maxBufferedBytes = maxBufferedBytes
    this.#pingMs = pingMs
  }

  /** The number of open monitors. */
  get size(): number {
    return this.#monitors.size
  }

  get hasRoom(): boolean {
    return this.#closing === undefined && this.#monitors.size < this.#maxMonitors
  }

  /** Starts observing the broker's messages. */
  watch(broker: Broker): void {
    this.#broker = broker
    if (this.#monitors.size > 0) this.#observe()
  }

  /** Adds a monitor. Check {@link hasRoom} first. */
  add(socket: WebSocket, stream: Socket, filter: MonitorFilter, expiresAt: number | undefined): void {
    this.#wake()
    const roomBytes = () => Math.min(this.#maxBufferedBytes, MAX_BUFFERED_BYTES / this.#monitors.size)
    const monitor = new Monitor(socket, stream, { filter, roomBytes, expiresAt, wake: () => this.#wake() })
    this.#monitors.add(monitor)
    socket.once('close', () => this.#remove(monitor))
    // An answer may wait while the server was busy: the loop reads it before an immediate, and it is handled in one.
    const afterAnswers = (): unknown => setImmediate(() => setImmediate(() => this.#pingAll()))
    this.#pings ??= setInterval(afterAnswers, this.#pingMs).unref()
    this.#observe()
    if (this.#closing !== undefined) monitor.end('shutdown')
  }

  /**
   * Ends every monitor with a close frame, and cuts those that are still open after `graceMs`.
   * Idempotent. @default graceMs 500
   */
  close(graceMs = 500): Promise<void> {
    this.#closing ??= (async () => {
      for (const monitor of this.#monitors) monitor.end('shutdown')
      if (this.#monitors.size === 0) return
      const cut = setTimeout(() => {
        for (const monitor of this.#monitors) monitor.cut()
      }, graceMs)
      await new Promise<void>((resolve) => (this.#whenEmpty = resolve))
      clearTimeout(cut)
    })()
    return this.#closing
  }

  #pingAll(): void {
    for (const one of this.#monitors) one.ping()
  }

  #observe(): void {
    this.#unobserve ??= this.#broker?.observe(this.#observer)
  }

  #remove(monitor: Monitor): void {
    this.#monitors.delete(monitor)
    if (this.#monitors.size > 0) return
    this.#unobserve?.()
    this.#unobserve = undefined
    clearInterval(this.#pings)
    this.#pings = undefined
    clearImmediate(this.#turn)
    this.#turn = undefined
    this.#work = undefined
    this.#waiting = []
    this.#waitingBytes = 0
    this.#resting = false
    this.#whenEmpty?.()
  }

  /** Runs on the messaging path. */
  #see(direction: Direction, type: ChannelType, channel: string, caller: Caller, message: OutgoingMessage): void {
    if (isReservedChannel(channel)) return
    if (this.#resting || this.#waiting.length >= MAX_WAITING || this.#waitingBytes >= MAX_WAITING_BYTES) {
      this.#gap().add(direction, type, channel)
      return
    }
    this.#waiting.push({ direction, type, channel, client: caller.clientId, message, time: Date.now() })
    this.#waitingBytes += message.body.byteLength
    this.#turn ??= setImmediate(() => this.#takeTurn())
  }

  /** Returns the gap at the end of the waiting list. */
  #gap(): Gap {
    const last = this.#waiting.at(-1)
    if (last instanceof Gap) return last
    const gap = new Gap()
    this.#waiting.push(gap)
    return gap
  }

  /** Works for a few milliseconds, then yields to the event loop. */
  #takeTurn(): void {
    this.#turn = undefined
    this.#work ??= this.#show()
    const until = performance.now() + TURN_MS
    while (performance.now() < until) {
      if (this.#work.next().done) {
        this.#work = undefined
        return
      }
    }
    this.#turn ??= setImmediate(() => this.#takeTurn())
  }

  /** Shows the waiting messages; pauses after each monitor. */
  *#show(): Generator<void> {
    while (this.#waiting.length > 0) {
      const batch = new Batch(this.#waiting.splice(0, BATCH))
      this.#waitingBytes -= batch.bytes
      for (const monitor of this.#monitors) {
        if (!monitor.running) continue
        monitor.show(batch)
        yield
      }
    }
    this.#resting = [...this.#monitors].every((monitor) => monitor.running && monitor.behind)
  }

  /**
   * Resumes because a reader reads again or a monitor was added: reports the missed messages to the
   * open monitors.
   */
  #wake(): void {
    if (!this.#resting) return
    this.#resting = false
    const missed = new Batch(this.#waiting.splice(0))
    for (const monitor of this.#monitors) if (monitor.running) monitor.show(missed)
  }
}
