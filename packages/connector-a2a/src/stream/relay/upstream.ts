import { Buffer } from 'node:buffer'
import type { Readable } from 'node:stream'

import type { ByteBudget } from '@signalbox/http-kit'

import type { EndMark } from '../channel/frame.ts'
import { EventBytes } from '../event-bytes.ts'
import { busy, STREAM_FAILURES } from '../stream-failures.ts'
import { CHUNK_BYTES, EventReader } from '../reader/event-reader.ts'
import type { ClientText, EventConverter } from './event-converter.ts'

/** The bytes read between two checks of the credit. Tiny events grow in the client's envelope. */
const SLICE_BYTES = 8_192

/**
 * After its terminal event an agent has this much time, and this many bytes, to end its response.
 * Then it is cut off.
 */
const LINGER_MS = 1_000
const LINGER_BYTES = 65_536

const EVENT_STREAM = /^\s*text\/event-stream\s*(?:;|$)/i

/** The destination of the events of an agent's response. */
export interface EventSink {
  /** Adds text of events for the client, in latin1; `end` marks the last. */
  push(text: string, end?: EndMark): void
  /** Sends the text that was pushed in this event-loop tick. */
  flush(): void
  /** Records that the agent has sent bytes, which need not be an event. */
  heard(): void
  /** True while reading must stop. */
  readonly blocked: boolean
  /** The bytes that wait for credit. */
  readonly waitingBytes: number
}

export interface UpstreamEvents {
  /** Called once, when the terminal event was pushed and the response has ended or was aborted. */
  onOver(): void
  /** Called with an error thrown while reading. Reading has stopped. */
  onCrash(error: unknown): void
}

/** An agent's response: it ends only when it is complete, and is destroyed when it was cut off. */
export interface UpstreamResponse extends Readable {
  readonly headers: { readonly 'content-type'?: string | undefined }
}

/**
 * Reads an agent's response and pushes the client's events, as far as the sink accepts them. The
 * last is one terminal event.
 */
export class Upstream {
  readonly #response: UpstreamResponse
  readonly #sink: EventSink
  readonly #maxEventBytes: number
  readonly #listener: UpstreamEvents
  readonly #events: EventConverter
  readonly #reader: EventReader | undefined
  readonly #eventBytes: EventBytes
  /** The body so far of a response that is no event stream. */
  #body: Buffer[] = []
  #bodyBytes = 0
  /** Bytes read from the socket that wait until the sink accepts events. */
  #rest: Buffer | undefined
  #paused = false
  #flushDue = false
  /** The end of the response: complete or broken off. */
  #ended: 'whole' | 'broken' | undefined
  /** True once the terminal event was pushed, the agent's or Signalbox's. */
  #terminated = false
  /** True once the agent has sent its terminal event or ended its response. */
  #agentDone = false
  #aborted = false
  #over = false
  #lingerUntil = Infinity
  #lingered = 0

  constructor(
    response: UpstreamResponse,
    events: EventConverter,
    sink: EventSink,
    maxEventBytes: number,
    listener: UpstreamEvents,
    held?: ByteBudget,
  ) {
    this.#eventBytes = new EventBytes(held)
    this.#response = response
    this.#sink = sink
    this.#maxEventBytes = maxEventBytes
    this.#listener = listener
    this.#events = events
    if (EVENT_STREAM.test(response.headers['content-type'] ?? '')) {
      this.#reader = new EventReader(maxEventBytes, (event) => {
        if (this.#terminated) return
        const text = this.#ended === undefined ? this.#events.next(event) : this.#events.cutOff(event)
        if (text === undefined) return
        if (typeof text.end === 'number') this.#refuse(text)
        else this.#pushOfAgent(text)
      })
    }
    response.on('error', () => {})
    response.once('close', () => this.#contain(() => this.#end('broken')))
  }

  /** True once the response is over and every event was pushed. */
  get over(): boolean {
    return this.#over
  }

  /** True if the response was aborted before the agent's terminal event. */
  get aborted(): boolean {
    return this.#aborted
  }

  /** Starts reading. */
  start(): void {
    if (this.#over) return
    if (this.#response.destroyed) {
      this.#end('broken')
      return
    }
    this.#response.once('end', () => this.#contain(() => this.#end('whole')))
    this.#response.on('data', (chunk: Buffer) => this.#contain(() => this.#take(chunk)))
  }

  /** Continues reading after the sink was blocked. */
  readOn(): void {
    if (!this.#paused) return
    this.#paused = false
    const rest = this.#rest
    this.#rest = undefined
    if (rest !== undefined) this.#read(rest)
    else this.#count()
    if (this.#rest === undefined) this.#conclude()
    if (!this.#paused) this.#response.resume()
  }

  /** Cuts off an agent that does not end its response, and sends what was held back too long. */
  tick(now: number): void {
    if (now >= this.#lingerUntil) this.abort()
    if (this.#terminated || this.#paused) return
    const held = this.#events.quiet?.(now)
    if (held === undefined) return
    this.#push(held)
    this.#sink.flush()
    this.#pauseIfBlocked()
  }

  /** Aborts the response, unless it is over. Idempotent. */
  abort(): void {
    if (this.#over) return
    if (!this.#agentDone) this.#aborted = true
    this.#terminated = true
    this.#body = []
    this.#rest = undefined
    this.#response.destroy()
    this.#finish()
  }

  /** Reports errors of the response's event listeners, which have no other handler. */
  #contain(act: () => void): void {
    try {
      act()
    } catch (error) {
      this.#listener.onCrash(error)
    }
  }

  #take(chunk: Buffer): void {
    this.#sink.heard()
    if (this.#terminated) this.#linger(chunk)
    else if (this.#reader === undefined) this.#collect(chunk)
    else this.#read(chunk)
  }

  #read(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.#terminated; at += SLICE_BYTES) {
      if (this.#sink.blocked) {
        this.#rest = chunk.subarray(at)
        break
      }
      if (this.#reader?.feed(chunk.subarray(at, at + SLICE_BYTES)) === false) {
        this.#refuse(this.#events.failure(STREAM_FAILURES.TOO_LARGE))
      } else this.#count()
    }
    this.#pauseIfBlocked()
    if (!this.#paused) this.#flushSoon()
  }

  /** Counts the bytes of the event that is being read, and of those that wait for credit. */
  #count(): void {
    if (this.#terminated) return
    const pending = this.#bodyBytes + CHUNK_BYTES * this.#body.length + (this.#reader?.pendingBytes ?? 0)
    const refusal = this.#eventBytes.set(pending + this.#sink.waitingBytes)
    if (refusal !== undefined) this.#refuse(this.#events.failure(busy(refusal)))
  }

  /** Sends events that are read in one event-loop tick together. */
  #flushSoon(): void {
    if (this.#flushDue) return
    this.#flushDue = true
    process.nextTick(() => {
      this.#flushDue = false
      this.#contain(() => {
        this.#sink.flush()
        this.#pauseIfBlocked()
      })
    })
  }

  #pauseIfBlocked(): void {
    if (this.#paused || this.#terminated || !this.#sink.blocked) return
    this.#paused = true
    this.#response.pause()
  }

  #collect(chunk: Buffer): void {
    this.#bodyBytes += chunk.length
    if (this.#bodyBytes > this.#maxEventBytes) this.#refuse(this.#events.failure(STREAM_FAILURES.TOO_LARGE))
    else {
      this.#body.push(chunk)
      this.#count()
    }
  }

  /** Ends the stream with an error of Signalbox, and aborts the response. */
  #refuse(failure: ClientText): void {
    if (this.#terminated) return
    this.#push(failure)
    this.abort()
  }

  #linger(chunk: Buffer): void {
    this.#lingered += chunk.length
    if (this.#lingered > LINGER_BYTES) this.abort()
  }

  #end(how: 'whole' | 'broken'): void {
    if (this.#ended !== undefined || this.#over) return
    this.#ended = how
    this.#agentDone = true
    if (this.#rest === undefined) this.#conclude()
  }

  /** Pushes the terminal event once the response is over and completely read. */
  #conclude(): void {
    if (this.#ended === undefined || this.#over) return
    if (!this.#terminated) {
      if (this.#ended === 'whole' && this.#reader === undefined) {
        this.#push(this.#events.plainAnswer(Buffer.concat(this.#body).toString('latin1')))
        this.#body = []
      } else {
        if (this.#ended === 'whole') this.#reader?.end()
        if (!this.#terminated) this.#push(this.#ended === 'whole' ? this.#events.ended() : this.#events.broken())
      }
    }
    this.#finish()
  }

  #pushOfAgent(text: ClientText): void {
    if (text.end !== undefined) {
      this.#agentDone = true
      this.#lingerUntil = performance.now() + LINGER_MS
    }
    this.#push(text)
  }

  #push({ text, end }: ClientText): void {
    if (end !== undefined) this.#terminated = true
    this.#sink.push(text, end)
  }

  #finish(): void {
    if (this.#over) return
    this.#over = true
    this.#listener.onOver()
  }
}
