import { Buffer } from 'node:buffer'

import type { BrokerHandle, Message, Subscription } from '@signalbox/broker-core'

import type { ServerSentEvent } from '../stream/event-reader.ts'
import { EventReader } from '../stream/event-reader.ts'
import type { EventConverter } from '../stream/events.ts'
import type { ResolvedStreamLimits } from '../stream/limits.ts'
import type { EndMark, StreamFrame } from '../stream/link/messages.ts'
import { decodeFrame, publishStreamCancel, streamChannel } from '../stream/link/messages.ts'
import type { FrameSource, ReceiverOwner } from '../stream/link/receiver.ts'
import type { WireVersion } from '../wire/index.ts'
import { convertLogged } from './logged-events.ts'
import type { RunChunk, RunLog } from './run-log.ts'
import { cursorText, decodeChunk } from './run-log.ts'

/** Events of a run that were removed: the sequences of the first and of the last. */
export interface MissingEvents {
  readonly from: number
  readonly to: number
}

export interface RunReaderOptions {
  readonly system: BrokerHandle
  readonly log: RunLog
  readonly run: string
  /** The sequence of the last event that the reader has. @default none: the run begins now */
  readonly after?: number | undefined
  readonly limits: ResolvedStreamLimits
  /** Returns the converter of the events for this reader. */
  readonly converter: (wire: WireVersion | undefined) => EventConverter
  /** Returns the event in place of removed ones; undefined to end the stream as interrupted. */
  readonly gap: (missing: MissingEvents) => Promise<string | undefined>
  /** Returns true if it is certain that no node writes the run. */
  readonly isLeft: () => boolean
  /** Called once the first event after `after` was found, with false if events before it are missing. @default nothing */
  readonly placed?: ((isComplete: boolean) => void) | undefined
  /** Called when the node that writes the run has left it, or is silent: it may be lost. */
  readonly abandoned: () => void
}

/** The chunks that are read ahead of the caller. */
const AHEAD = 2

/** The beginning of an event without a name, as the log has it. */
const DATA = 'data: '

/**
 * The caller's end of a logged stream: reads the chunks of a run from the log at the caller's pace, and later ones as
 * they are written. It converts the events for its caller, and gives each the id at which the caller can continue.
 */
export class RunReader implements FrameSource {
  readonly #options: RunReaderOptions
  readonly #after: number
  #subscription: Subscription | undefined
  #owner: ReceiverOwner | undefined
  #state: 'open' | 'ended' | 'closed' = 'open'
  /** The number of the next chunk; undefined until its place in the log is found. */
  #next: number | undefined
  /** The sequence of the last event that was read. */
  #sequence = 0
  #isReading = false
  /** The number of the last chunk that the log may have. */
  #known: number
  /** The number of the last chunk that the reader has heard of. */
  #heard = 0
  #live: RunChunk | undefined
  #frames: StreamFrame[] = []
  #written = 0
  #lastHeard = performance.now()
  #agentHeard = 0
  #wasLeft = false
  #converter: EventConverter | undefined
  #reader: EventReader
  /** True while an event continues in the next chunk. */
  #isPartial = false
  #texts: string[] = []
  #end: EndMark | undefined

  private constructor(options: RunReaderOptions) {
    const { after } = options
    this.#options = options
    this.#after = after ?? 0
    this.#next = this.#after === 0 ? 1 : undefined
    this.#known = after === undefined ? 0 : Infinity
    this.#reader = this.#newReader()
  }

  /** Begins to read. @throws BrokerError ENGINE_UNAVAILABLE */
  static async open(options: RunReaderOptions): Promise<RunReader> {
    const reader = new RunReader(options)
    // Before the log is read, so that no chunk is missed between the two.
    reader.#subscription = await options.system.events.subscribe(streamChannel(options.run), {}, (message) =>
      reader.#onMessage(message),
    )
    return reader
  }

  /** Adds an event before those of the log. Its id is that of the last event that the reader has. */
  begin(text: string): void {
    this.#addFrame(withId(text, this.#cursor(this.#after)), undefined)
  }

  start(owner: ReceiverOwner): void {
    this.#owner = owner
    this.#lastHeard = performance.now()
    this.#subscription?.closed.then(() => owner.onLost()).catch((error: unknown) => owner.crash(error))
    this.#readOn()
  }

  get lastHeard(): number {
    return this.#lastHeard
  }

  get agentHeard(): number {
    return this.#agentHeard
  }

  /** @inheritdoc The log has every event. */
  get gap(): boolean {
    return false
  }

  next(): StreamFrame | undefined {
    return this.#frames.shift()
  }

  join({ body }: StreamFrame): Uint8Array {
    return body
  }

  read(): void {
    this.#readOn()
  }

  confirm(): void {}

  /** @inheritdoc A run goes on without readers. */
  async cancel(): Promise<void> {}

  tick(now: number): void {
    if (this.#state !== 'open') return
    const held = this.#converter?.quiet?.(now)
    if (held !== undefined) this.#addFrame(withId(held.text, this.#cursor(this.#sequence)), held.end)
    if (held !== undefined) this.#owner?.onFrame()
    const isLeft = !this.#wasLeft && this.#options.isLeft()
    if (isLeft) this.#wasLeft = true
    else if (now - this.#lastHeard < this.#options.limits.silenceMs - SPARE_MS) return
    // Its owner would end the stream as interrupted.
    this.#lastHeard = now
    this.#abandoned()
  }

  async close(): Promise<void> {
    this.#state = 'closed'
    this.#owner = undefined
    this.#frames = []
    await this.#subscription?.close()
  }

  async abort(): Promise<void> {
    await publishStreamCancel(this.#options.system, this.#options.run).catch(() => {})
  }

  #abandoned(): void {
    // The last chunks may have been missed.
    this.#known = Infinity
    this.#readOn()
    this.#options.abandoned()
  }

  #onMessage(message: Message): void {
    if (this.#state !== 'open') return
    this.#lastHeard = performance.now()
    const frame = decodeFrame(message)
    const beat = frame?.kind === 'heartbeat' ? frame : undefined
    const chunk = beat === undefined ? decodeChunk(message) : undefined
    if (beat?.alive === true) this.#agentHeard = this.#lastHeard
    if (beat?.isLeft === true && this.#owner !== undefined) this.#abandoned()
    // A chunk that comes next need not be read from the log.
    if (chunk !== undefined && chunk.number === this.#next && !this.#isReading) this.#live = chunk
    const last = chunk?.number ?? beat?.last ?? 0
    this.#heard = Math.max(this.#heard, last)
    this.#known = Math.max(this.#known, last)
    this.#readOn()
  }

  /** Reads the next chunk unless enough are read ahead. */
  #readOn(): void {
    if (this.#isReading || this.#state !== 'open' || this.#owner === undefined) return
    if (this.#known < (this.#next ?? 1) || this.#frames.length >= AHEAD) return
    const live = this.#live
    if (live !== undefined && live.number === this.#next) {
      this.#live = undefined
      this.#take(live)
      this.#owner.onFrame()
      return
    }
    this.#isReading = true
    this.#readNext().then(
      () => {
        this.#isReading = false
        if (this.#state !== 'closed' && this.#frames.length > 0) this.#owner?.onFrame()
        this.#readOn()
      },
      () => {
        this.#isReading = false
        this.#owner?.onLost()
      },
    )
  }

  /** Reads one chunk of the log. */
  async #readNext(): Promise<void> {
    const { log, run } = this.#options
    const known = this.#known
    // News that come meanwhile raise it.
    this.#known = 0
    if (this.#next === undefined && !(await this.#findPlace())) return
    const number = this.#next ?? 1
    const chunk = await log.read(run, number)
    // It and later ones may have been removed, because the caller reads slowly.
    if (chunk !== undefined) this.#take(chunk)
    else if (!(await this.#findPlace())) return
    this.#known = Math.max(this.#known, known)
  }

  /** Finds the chunk with the first event that the reader does not have. Resolves with false if there is none yet. */
  async #findPlace(): Promise<boolean> {
    const { gap, log, placed, run } = this.#options
    const isBeginning = this.#next === undefined
    // Its events that the reader has are read again, because a translation depends on them.
    const found = isBeginning ? await log.find(run, this.#after + 1, this.#heard) : undefined
    if (found !== undefined) {
      placed?.(true)
      this.#next = found.number
      this.#sequence = found.first - 1
      return true
    }
    const first = await log.first(run, this.#heard)
    if (first === undefined || first.number <= (this.#next ?? 0)) return false
    if (isBeginning) placed?.(false)
    const text = await gap({ from: Math.max(this.#after, this.#sequence) + 1, to: first.first - 1 })
    this.#next = first.number
    this.#sequence = first.first - 1
    if (this.#isPartial) this.#startEvent()
    if (text === undefined) this.#owner?.onLost()
    else this.#addFrame(withId(text, this.#cursor(this.#sequence)), undefined)
    return true
  }

  #take(chunk: RunChunk): void {
    this.#next = chunk.number + 1
    this.#converter ??= this.#options.converter(chunk.wire)
    // The beginning of its event was removed.
    if (chunk.continues && !this.#isPartial) return
    // The node that wrote an event in parts was lost before the last.
    if (this.#isPartial && !chunk.continues) this.#startEvent()
    this.#isPartial = chunk.more
    const { buffer, byteOffset, byteLength } = chunk.body
    const body = Buffer.from(buffer, byteOffset, byteLength)
    if (chunk.more || chunk.continues) this.#reader.feed(body)
    else this.#readWhole(body.toString('latin1'))
    if (chunk.more) return
    const text = this.#texts.join('')
    this.#texts = []
    if (text === '' && this.#end === undefined) return
    this.#addFrame(text, this.#end)
    if (this.#end !== undefined) this.#state = 'ended'
  }

  /** Reads whole events. Most have one line of data, and need no parser. */
  #readWhole(text: string): void {
    for (let at = 0; at < text.length;) {
      const end = text.indexOf('\n\n', at)
      // A chunk that was cut off, which no node writes.
      if (end === -1) return
      const event = text.slice(at, end)
      if (event.startsWith(DATA) && !event.includes('\n')) {
        this.#onEvent({ event: undefined, data: event.slice(DATA.length) })
      } else this.#reader.feed(Buffer.from(`${event}\n\n`, 'latin1'))
      at = end + 2
    }
  }

  #startEvent(): void {
    this.#isPartial = false
    this.#reader = this.#newReader()
  }

  /** The log has no event that is too large. */
  #newReader(): EventReader {
    return new EventReader(Infinity, (event) => this.#onEvent(event))
  }

  #onEvent(event: ServerSentEvent): void {
    const sequence = ++this.#sequence
    const converter = this.#converter
    if (converter === undefined || this.#end !== undefined) return
    const converted = convertLogged(converter, event)
    if (sequence > this.#after) {
      const shown = converter.holds === true ? sequence - 1 : sequence
      if (converted !== undefined) this.#texts.push(withId(converted.text, this.#cursor(shown)))
    } else if (sequence === this.#after) converter.rest?.()
    this.#end = converted?.end
  }

  #cursor(sequence: number): string {
    return cursorText({ run: this.#options.run, sequence })
  }

  #addFrame(text: string, end: EndMark | undefined): void {
    const number = ++this.#written
    const body = Buffer.from(text, 'latin1')
    this.#frames.push({ kind: 'frame', number, body, more: false, ask: false, cut: false, end })
  }
}

/** The time before the end of the longest silence at which a node counts as lost, in ms. */
const SPARE_MS = 1_000

/** Gives the last event of a text an id. With that, a reader that got a part of the text gets the whole text again. */
function withId(text: string, id: string): string {
  if (text === '' || text.startsWith(':')) return text
  const start = text.lastIndexOf('\n\n', text.length - 3)
  const at = start === -1 ? 0 : start + 2
  return `${text.slice(0, at)}id: ${id}\n${text.slice(at)}`
}
