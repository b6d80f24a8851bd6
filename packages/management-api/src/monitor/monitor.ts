import type { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'

import type { RawData, WebSocket } from 'ws'

import type { Batch } from './batch.ts'
import { Gap } from './gap.ts'
import type { MonitorFilter } from './monitor-filter.ts'
import { droppedFrame, endFrame, errorFrame, stateFrame } from './monitor-frames.ts'

/** The most frames that a client may send within a second; its commands are two words. */
const MAX_FRAMES = 100

/** What a client that sends without end may take to follow, in milliseconds. */
const FAREWELL_MS = 500

/** WebSocket close codes (RFC 6455, 7.4.1): why a monitor ended. */
export const MONITOR_ENDS = {
  /** The server shuts down. */
  shutdown: { code: 1001, reason: 'the server is shutting down' },
  /** The token that opened it has expired (S9). */
  expired: { code: 1008, reason: 'the token has expired' },
  /** Its client sends without end, and each frame wants an answer. */
  flooded: { code: 1008, reason: `more than ${MAX_FRAMES} frames came within a second` },
} as const

/** The longest a timer can wait, in milliseconds. */
const MAX_TIMER_MS = 2_147_483_647

/** How often the clock comes by for a reader that takes what is sent, and does not answer. */
const MAX_UNANSWERED = 10

export interface MonitorSettings {
  readonly filter: MonitorFilter
  /** Bytes that may wait for the reader, at the moment; what comes past them is dropped and counted. */
  readonly roomBytes: () => number
  /** When the credentials end, milliseconds since the epoch (S9). */
  readonly expiresAt: number | undefined
  /** Called when its reader has caught up, and before its operator stops or starts it. */
  readonly wake: () => void
}

/** One operator who watches: a WebSocket, its filter, and what its reader lost. */
export class Monitor {
  readonly #filter: MonitorFilter
  readonly #socket: WebSocket
  readonly #stream: Socket
  readonly #roomBytes: () => number
  readonly #wake: () => void
  readonly #expiry: NodeJS.Timeout | undefined
  #running = true
  /** How often the clock came by since it was asked and did not answer. */
  #unanswered = 0
  #takenBytes = 0
  #dropped = 0
  #unreportedGap = 0
  /** Frames of the client since {@link #countedFrom}. */
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

  /** Whether messages are shown at the moment: the operator may stop and start. */
  get running(): boolean {
    return this.#running && this.#socket.readyState === this.#socket.OPEN
  }

  /** Whether it missed something that its reader has not been told: it has no room. */
  get behind(): boolean {
    return this.#unreportedGap > 0
  }

  /**
   * Sends what its filter lets through, in one write, as far as the buffer holds it; the rest is dropped and counted, and
   * not even printed. Never waits.
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
   * Asks whether the reader is alive. One that has not answered since the last time is cut off, unless it takes what is
   * sent to it: it then finds the question behind all that comes first.
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

  /** Bytes that the system took for the reader. */
  get #taken(): number {
    return this.#stream.bytesWritten - this.#stream.writableLength
  }

  /** Ends politely; {@link cut} ends those who do not answer. */
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

  /** So many messages could not be shown. The reader is told at once, or as soon as it has caught up. */
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
    // With room for more than the one frame, so that a reader at its limit is not told of each single message.
    if (this.#unreportedGap === 0 || this.#socket.bufferedAmount > this.#roomBytes() / 2) return
    const count = this.#unreportedGap
    this.#unreportedGap = 0
    this.#send(droppedFrame(count, this.#dropped))
    this.#wake()
  }

  /** Counts a frame of the client; false for one that is not answered any more. */
  #admits(): boolean {
    if (this.#socket.readyState !== this.#socket.OPEN) return false
    const now = performance.now()
    if (now - this.#countedFrom > 1_000) {
      this.#countedFrom = now
      this.#frames = 0
    }
    if (++this.#frames <= MAX_FRAMES) return true
    this.end('flooded')
    // Time for the reason to arrive; until then nothing that comes is answered.
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

  /** A reader that takes nothing must not make us keep answers to what it sends either. */
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
