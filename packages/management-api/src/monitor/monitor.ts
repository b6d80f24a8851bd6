import type { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'

import type { RawData, WebSocket } from 'ws'

import type { Batch, MonitorFilter } from './monitored-messages.ts'
import { droppedFrame, endFrame, errorFrame, Gap, stateFrame } from './monitored-messages.ts'

/** The most frames that a client may send within a second. Its commands are one word. */
const MAX_FRAMES = 100

/** The time for a flooding client to close the connection, in ms. */
const FAREWELL_MS = 500

/** The ends of a monitor, with WebSocket close codes (RFC 6455, section 7.4.1). */
const MONITOR_ENDS = {
  /** The server shuts down. */
  shutdown: { code: 1001, reason: 'the server is shutting down' },
  /** The token that opened the monitor has expired. */
  expired: { code: 1008, reason: 'the token has expired' },
  /** The client sends more frames than the server answers. */
  flooded: { code: 1008, reason: `more than ${MAX_FRAMES} frames came within a second` },
} as const

/** The longest delay of a timer, in ms. */
const MAX_TIMER_MS = 2_147_483_647

/** The most pings without an answer for a reader that still reads. */
const MAX_UNANSWERED = 10

interface MonitorSettings {
  readonly filter: MonitorFilter
  /** The bytes that may wait for the reader at the moment; further frames are dropped and counted. */
  readonly roomBytes: () => number
  /** The expiry of the credentials, in ms since the epoch. */
  readonly expiresAt: number | undefined
  /** Called when the reader has caught up, and before the operator stops or starts the monitor. */
  readonly wake: () => void
}

/** One monitor: a WebSocket, its filter, and the count of messages that its reader missed. */
export class Monitor {
  readonly #filter: MonitorFilter
  readonly #socket: WebSocket
  readonly #stream: Socket
  readonly #roomBytes: () => number
  readonly #wake: () => void
  readonly #expiry: NodeJS.Timeout | undefined
  #running = true
  /** The number of pings since the last answer. */
  #unanswered = 0
  #takenBytes = 0
  #dropped = 0
  #unreportedGap = 0
  /** The client's frames since {@link #countedFrom}. */
  #frames = 0
  #countedFrom = 0

  constructor(socket: WebSocket, stream: Socket, { filter, roomBytes, expiresAt, wake }: MonitorSettings) {
    this.#filter = filter
    this.#socket = socket
    this.#stream = stream
    this.#roomBytes = roomBytes
    this.#wake = wake
    socket.on('message', (data, isBinary) => this.#command(data, isBinary))
    socket.on('ping', (data) => this.#pong(data))
    socket.on('pong', () => (this.#unanswered = 0))
    socket.on('error', () => socket.terminate())
    socket.once('close', () => clearTimeout(this.#expiry))
    if (expiresAt !== undefined) {
      const left = Math.min(Math.max(expiresAt - Date.now(), 0), MAX_TIMER_MS)
      this.#expiry = setTimeout(() => this.end('expired'), left).unref()
    }
    this.#send(stateFrame('started'))
  }

  /** True while messages are shown. The operator may stop and start the monitor. */
  get running(): boolean {
    return this.#running && this.#socket.readyState === this.#socket.OPEN
  }

  /** True if the reader missed messages and has not got a `dropped` frame for them yet. */
  get behind(): boolean {
    return this.#unreportedGap > 0
  }

  /**
   * Sends the messages that match the filter, in one write, as far as the buffer has space. Drops
   * and counts the rest without serializing it. Never waits.
   */
  show(batch: Batch): void {
    const { matches, maxBodySize } = this.#filter
    this.#stream.cork()
    this.#tellDropped()
    for (const item of batch.items) {
      if (item instanceof Gap) this.#miss(item.countFor(this.#filter))
      else if (!matches(item.direction, item.type, item.channel)) continue
      else if (this.#unreportedGap > 0) this.#miss(1)
      else {
        const frame = batch.frame(item, maxBodySize)
        if (this.#hasRoomFor(frame)) this.#send(frame)
        else this.#miss(1)
      }
    }
    this.#stream.uncork()
  }

  /**
   * Sends a ping. Cuts off a reader that has not answered the previous one, unless it still reads:
   * the ping is behind the frames that wait for it.
   */
  ping(): void {
    if (this.#unanswered > 0 && (this.#takenBytes === this.#taken || this.#unanswered === MAX_UNANSWERED)) {
      this.#socket.terminate()
      return
    }
    this.#tellDropped()
    if (this.#unanswered === 0) this.#socket.ping()
    this.#unanswered++
    this.#takenBytes = this.#taken
  }

  /** The bytes that the operating system has accepted for the reader. */
  get #taken(): number {
    return this.#stream.bytesWritten - this.#stream.writableLength
  }

  /** Ends the monitor with a close frame. {@link cut} ends readers that do not answer it. */
  end(why: keyof typeof MONITOR_ENDS): void {
    const { code, reason } = MONITOR_ENDS[why]
    clearTimeout(this.#expiry)
    this.#running = false
    this.#send(endFrame(reason))
    this.#socket.close(code, reason)
  }

  cut(): void {
    this.#socket.terminate()
  }

  /**
   * Counts messages that could not be shown, and reports them to the reader at once, or as soon as
   * it has caught up.
   */
  #miss(count: number): void {
    this.#dropped += count
    this.#unreportedGap += count
    this.#tellDropped()
  }

  #hasRoomFor({ byteLength }: Buffer): boolean {
    const { bufferedAmount } = this.#socket
    return bufferedAmount === 0 || bufferedAmount + byteLength <= this.#roomBytes()
  }

  #tellDropped(): void {
    // Half of the buffer must be free: otherwise a reader at its limit gets a `dropped` frame for
    // each single message.
    if (this.#unreportedGap === 0 || this.#socket.bufferedAmount > this.#roomBytes() / 2) return
    const count = this.#unreportedGap
    this.#unreportedGap = 0
    this.#send(droppedFrame(count, this.#dropped))
    this.#wake()
  }

  /** Counts a frame of the client. Returns false if it must not be answered any more. */
  #admits(): boolean {
    if (this.#socket.readyState !== this.#socket.OPEN) return false
    const now = performance.now()
    if (now - this.#countedFrom > 1_000) {
      this.#countedFrom = now
      this.#frames = 0
    }
    if (++this.#frames <= MAX_FRAMES) return true
    this.end('flooded')
    // Leaves time for the reason to arrive. No further frame is answered.
    setTimeout(() => this.cut(), FAREWELL_MS).unref()
    return false
  }

  #command(data: RawData, isBinary: boolean): void {
    if (!this.#admits()) return
    const command = isBinary ? '' : rawText(data).trim()
    if (command === 'start' || command === 'stop') {
      this.#wake()
      this.#running = command === 'start'
      this.#send(stateFrame(this.#running ? 'started' : 'stopped'))
    } else {
      this.#send(errorFrame('unknown command; allowed are the text frames start and stop'))
    }
  }

  /** True if a reader that does not read must not get answers to its own frames either. */
  get #isFull(): boolean {
    return this.#socket.bufferedAmount > 2 * this.#roomBytes()
  }

  #pong(data: Buffer): void {
    if (this.#admits() && !this.#isFull) this.#socket.pong(data)
  }

  #send(frame: Buffer): void {
    if (this.#isFull) return
    this.#socket.send(frame, { binary: false }, () => this.#tellDropped())
  }
}

function rawText(data: RawData): string {
  if (Array.isArray(data)) return data.map((part) => part.toString()).join('')
  return data instanceof ArrayBuffer ? new TextDecoder().decode(data) : data.toString()
}
