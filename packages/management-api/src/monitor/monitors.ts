import type { Buffer } from 'node:buffer'
import type { Duplex } from 'node:stream'

import { isReservedChannel } from '@signalbox/broker-core'
import type { Broker, BrokerObserver, Caller, ChannelType, OutgoingMessage } from '@signalbox/broker-core'
import type { WebSocket } from 'ws'

import { Monitor } from './monitor.ts'
import type { Direction, MonitorFilter } from './monitor-filter.ts'
import { messageFrame } from './monitor-frames.ts'
import type { Sighting } from './monitor-frames.ts'

export interface MonitorsOptions {
  /** Monitors open at a time. @default 1000 */
  readonly maxMonitors?: number
  /** Bytes that may wait for one reader. @default 1048576 */
  readonly maxBufferedBytes?: number
  /** Milliseconds between pings; a reader that did not answer the one before is cut off. @default 30000 */
  readonly pingMs?: number
}

/** Messages, and bytes of their bodies, that may wait to be shown; further ones are dropped for all monitors alike. */
const MAX_WAITING = 4_096
const MAX_WAITING_BYTES = 16 * 1024 * 1024

/** How long the event loop is held at once to show messages, in milliseconds. */
const TURN_MS = 4

/** Messages that are shown together: one write for each monitor. */
const BATCH = 64

/**
 * The live monitors. The messaging path pays for putting a message into a bounded list, and nothing at all while nobody
 * watches; filtering, printing and sending come later, a few milliseconds at a time.
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
  #waiting: Sighting[] = []
  #waitingBytes = 0
  #missed = 0
  #work: Iterator<void> | undefined
  #turn: NodeJS.Immediate | undefined
  #pings: NodeJS.Timeout | undefined
  #broker: Broker | undefined
  #unobserve: (() => void) | undefined
  #whenEmpty: (() => void) | undefined
  #closed = false

  constructor({ maxMonitors = 1_000, maxBufferedBytes = 1_048_576, pingMs = 30_000 }: MonitorsOptions = {}) {
    this.#maxMonitors = maxMonitors
    this.#maxBufferedBytes = maxBufferedBytes
    this.#pingMs = pingMs
  }

  /** How many are open. */
  get size(): number {
    return this.#monitors.size
  }

  get hasRoom(): boolean {
    return !this.#closed && this.#monitors.size < this.#maxMonitors
  }

  /** From now on there are messages to see. */
  watch(broker: Broker): void {
    this.#broker = broker
    if (this.#monitors.size > 0) this.#observe()
  }

  /** Adds an operator who watches. Ask {@link hasRoom} before. */
  add(socket: WebSocket, stream: Duplex, filter: MonitorFilter, expiresAt: number | undefined): void {
    const monitor = new Monitor(socket, stream, { filter, maxBufferedBytes: this.#maxBufferedBytes, expiresAt })
    this.#monitors.add(monitor)
    socket.once('close', () => this.#remove(monitor))
    this.#pings ??= setInterval(() => {
      for (const one of this.#monitors) one.ping()
    }, this.#pingMs).unref()
    this.#observe()
    if (this.#closed) monitor.end('shutdown')
  }

  /** Ends every monitor politely, and cuts those that did not follow within `graceMs`. Idempotent. @default graceMs 500 */
  async close(graceMs = 500): Promise<void> {
    this.#closed = true
    for (const monitor of this.#monitors) monitor.end('shutdown')
    if (this.#monitors.size === 0) return
    const cut = setTimeout(() => {
      for (const monitor of this.#monitors) monitor.cut()
    }, graceMs)
    await new Promise<void>((resolve) => (this.#whenEmpty = resolve))
    clearTimeout(cut)
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
    this.#missed = 0
    this.#whenEmpty?.()
  }

  /** On the messaging path. */
  #see(direction: Direction, type: ChannelType, channel: string, caller: Caller, message: OutgoingMessage): void {
    if (isReservedChannel(channel)) return
    if (this.#waiting.length >= MAX_WAITING || this.#waitingBytes >= MAX_WAITING_BYTES) {
      this.#missed++
      return
    }
    this.#waiting.push({ direction, type, channel, client: caller.clientId, message, time: Date.now() })
    this.#waitingBytes += message.body.byteLength
    this.#turn ??= setImmediate(() => this.#takeTurn())
  }

  /** Works for a few milliseconds, then lets everybody else have theirs. */
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
    this.#turn = setImmediate(() => this.#takeTurn())
  }

  /** Shows all that waits; pauses after each monitor. */
  *#show(): Generator<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH)
      for (const { message } of batch) this.#waitingBytes -= message.body.byteLength
      const missed = this.#missed
      this.#missed = 0
      const frames = new FrameCache(batch)
      for (const monitor of this.#monitors) {
        if (!monitor.running) continue
        if (missed > 0) monitor.missed(missed)
        const shown = frames.matching(monitor.filter)
        if (shown.length > 0) monitor.show(shown)
        yield
      }
    }
  }
}

/** The frames of a batch, each printed once for all monitors that show as much of its body. */
class FrameCache {
  readonly #batch: readonly Sighting[]
  readonly #frames = new Map<number, Map<Sighting, Buffer>>()

  constructor(batch: readonly Sighting[]) {
    this.#batch = batch
  }

  matching({ matches, maxBodySize }: MonitorFilter): readonly Buffer[] {
    let bySize = this.#frames.get(maxBodySize)
    if (bySize === undefined) this.#frames.set(maxBodySize, (bySize = new Map()))
    const frames: Buffer[] = []
    for (const sighting of this.#batch) {
      if (!matches(sighting.direction, sighting.type, sighting.channel)) continue
      let frame = bySize.get(sighting)
      if (frame === undefined) bySize.set(sighting, (frame = messageFrame(sighting, maxBodySize)))
      frames.push(frame)
    }
    return frames
  }
}
