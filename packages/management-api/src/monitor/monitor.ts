import type { Buffer } from 'node:buffer'
import type { Duplex } from 'node:stream'

import type { RawData, WebSocket } from 'ws'

import type { MonitorFilter } from './monitor-filter.ts'
import { droppedFrame, endFrame, errorFrame, stateFrame } from './monitor-frames.ts'

/** WebSocket close codes (RFC 6455, 7.4.1): why a monitor ended. */
export const MONITOR_ENDS = {
  /** The server shuts down. */
  shutdown: { code: 1001, reason: 'the server is shutting down' },
  /** The token that opened it has expired (S9). */
  expired: { code: 1008, reason: 'the token has expired' },
} as const

/** The longest a timer can wait, in milliseconds. */
const MAX_TIMER_MS = 2_147_483_647

export interface MonitorSettings {
  readonly filter: MonitorFilter
  /** Bytes that may wait for the reader; what comes past them is dropped and counted. */
  readonly maxBufferedBytes: number
  /** When the credentials end, milliseconds since the epoch (S9). */
  readonly expiresAt: number | undefined
}

/** One operator who watches: a WebSocket, its filter, and what its reader lost. */
export class Monitor {
  readonly filter: MonitorFilter
  readonly #socket: WebSocket
  readonly #stream: Duplex
  readonly #maxBufferedBytes: number
  readonly #expiry: NodeJS.Timeout | undefined
  #running = true
  #answered = true
  #dropped = 0
  #untold = 0

  constructor(socket: WebSocket, stream: Duplex, { filter, maxBufferedBytes, expiresAt }: MonitorSettings) {
    this.filter = filter
    this.#socket = socket
    this.#stream = stream
    this.#maxBufferedBytes = maxBufferedBytes
    socket.on('message', (data, isBinary) => this.#command(data, isBinary))
    socket.on('pong', () => (this.#answered = true))
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

  /** Messages that its reader was too slow for. */
  get dropped(): number {
    return this.#dropped
  }

  /** Sends frames in one write, as many as the buffer holds; the rest is dropped and counted. Never waits. */
  show(frames: readonly Buffer[]): void {
    this.#stream.cork()
    this.#tellDropped()
    for (const frame of frames) {
      if (this.#untold > 0 || this.#socket.bufferedAmount + frame.byteLength > this.#maxBufferedBytes) this.missed(1)
      else this.#send(frame)
    }
    this.#stream.uncork()
  }

  /** So many messages could not be shown. The reader is told as soon as it has caught up. */
  missed(count: number): void {
    this.#dropped += count
    this.#untold += count
  }

  /** Asks whether the reader is alive; one that has not answered since the last time is cut off. */
  ping(): void {
    if (!this.#answered) {
      this.#socket.terminate()
      return
    }
    this.#answered = false
    this.#tellDropped()
    this.#socket.ping()
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

  #tellDropped(): void {
    // With room for more than the one frame, so that a reader at its limit is not told of each single message.
    if (this.#untold === 0 || this.#socket.bufferedAmount > this.#maxBufferedBytes / 2) return
    const count = this.#untold
    this.#untold = 0
    this.#send(droppedFrame(count, this.#dropped))
  }

  #command(data: RawData, isBinary: boolean): void {
    const command = isBinary ? '' : rawText(data).trim()
    if (command === 'start' || command === 'stop') {
      this.#running = command === 'start'
      this.#send(stateFrame(this.#running ? 'started' : 'stopped'))
    } else {
      this.#send(errorFrame('unknown command; allowed are the text frames start and stop'))
    }
  }

  #send(frame: Buffer): void {
    // A reader that takes nothing must not make us keep answers to its commands either.
    if (this.#socket.bufferedAmount > 2 * this.#maxBufferedBytes) return
    this.#socket.send(frame, { binary: false }, () => this.#tellDropped())
  }
}

function rawText(data: RawData): string {
  if (Array.isArray(data)) return data.map((part) => part.toString()).join('')
  return data instanceof ArrayBuffer ? new TextDecoder().decode(data) : data.toString()
}
