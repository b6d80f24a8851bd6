import { Buffer } from 'node:buffer'

import type { BrokerHandle, Message, Subscription } from '@signalbox/broker-core'
import type { ByteBudget } from '@signalbox/http-kit'
import { LARGE_BODY_BYTES } from '@signalbox/http-kit/internal'

import { EVENT_ENVELOPE_BYTES } from '../events.ts'
import type { StreamFailure } from '../failures.ts'
import { busy, STREAM_FAILURES } from '../failures.ts'
import type { ResolvedStreamLimits } from '../limits.ts'
import { EventBytes } from '../limits.ts'
import { firstMoment } from '../stream-timer.ts'
import type { StreamFrame } from './messages.ts'
import { controlChannel, decodeFrame, encodeCredit, publishStreamCancel, streamChannel } from './messages.ts'

/** The stream that reads from a link. */
export interface ReceiverOwner {
  /** Called after each new frame, and when one is missing. */
  onFrame(): void
  /** Called when the broker has ended the subscription. */
  onLost(): void
  /** Called with the error that {@link onLost} has thrown. */
  crash(error: unknown): void
}

/** The source of a stream's frames for its caller. */
export interface FrameSource {
  /** Starts to notify the stream that reads the frames. @param budget Counts the bytes of an event in parts */
  start(owner: ReceiverOwner, budget: ByteBudget | undefined): void
  /** The time of the last message of the agent's node, as a value of `performance.now()`. */
  readonly lastHeard: number
  /** The last time at which the agent was known to have sent bytes without an event; 0 for never. */
  readonly agentHeard: number
  /** True if a frame is missing. */
  readonly gap: boolean
  next(): StreamFrame | undefined
  join(frame: StreamFrame): JoinedEvents | StreamFailure | undefined
  /** Records that the caller has read every frame that {@link next} returned. */
  read(): void
  /** Records that the caller has read the last frame. */
  confirm(): void
  /** Ends the agent's side, if the stream is its caller's alone. */
  cancel(): Promise<void>
  /** Ends the agent's side, also for other readers. */
  abort(): Promise<void>
  tick(now: number): void
  /** Drops the frames that were not read. Idempotent. */
  close(): Promise<void>
}

/**
 * The caller's end of a stream's link: queues the frames in order, joins events that came in parts, and grants credit.
 * The granted credit bounds the queue.
 */
export class LinkReceiver implements FrameSource {
  readonly #system: BrokerHandle
  readonly #streamId: string
  /** `gap`: a frame is missing, and no frame is queued after it, because events are delivered at most once. */
  #state: 'open' | 'gap' | 'closed' = 'open'
  #subscription: Subscription | undefined
  #frames: StreamFrame[] = []
  #last = 0
  #lastHeard = performance.now()
  #agentHeard = 0
  #owner: ReceiverOwner | undefined
  readonly #credit: Credit
  readonly #parts: EventParts

  private constructor(system: BrokerHandle, streamId: string, limits: ResolvedStreamLimits) {
    this.#system = system
    this.#streamId = streamId
    this.#credit = new Credit(limits)
    this.#parts = new EventParts(limits.maxEventBytes + EVENT_ENVELOPE_BYTES)
  }

  /**
   * Opens the caller's end of a link. Frames are queued from now on.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  static async open(system: BrokerHandle, streamId: string, limits: ResolvedStreamLimits): Promise<LinkReceiver> {
    const link = new LinkReceiver(system, streamId, limits)
    link.#subscription = await system.events.subscribe(streamChannel(streamId), {}, (message) => link.#onFrame(message))
    return link
  }

  /**
   * Starts to notify the stream that reads the frames, and to grant credit.
   * @param budget Counts the bytes of an event that is being joined. @default no counting
   */
  start(owner: ReceiverOwner, budget: ByteBudget | undefined): void {
    this.#owner = owner
    // The agent may have taken longer for its headers than its node may be silent.
    this.#lastHeard = performance.now()
    this.#credit.start()
    this.#parts.countIn(budget)
    this.#subscription?.closed.then(() => owner.onLost()).catch((error: unknown) => owner.crash(error))
  }

  /** The time of the last message of the agent's node, as a value of `performance.now()`. */
  get lastHeard(): number {
    return this.#lastHeard
  }

  /** The last time when a heartbeat said that the agent had sent bytes without an event; 0 for never. */
  get agentHeard(): number {
    return this.#agentHeard
  }

  /** True if a frame is missing. The frames before it may still be queued. */
  get gap(): boolean {
    return this.#state === 'gap'
  }

  /** Returns the next frame. */
  next(): StreamFrame | undefined {
    const frame = this.#frames.shift()
    if (frame !== undefined) this.#credit.written(frame)
    return frame
  }

  /**
   * Returns the whole events that a frame completes, a large one in parts; undefined while more parts are to come.
   */
  join(frame: StreamFrame): JoinedEvents | StreamFailure | undefined {
    return this.#parts.add(frame)
  }

  /** Grants credit if it is time: the caller has read every frame that {@link next} returned. */
  read(): void {
    if (this.#credit.read()) this.#grant()
  }

  /** Confirms to the agent's node that the caller has read the last frame. */
  confirm(): void {
    this.#credit.read()
    this.#grant()
  }

  /** Cancels the agent's side of the stream. */
  async cancel(): Promise<void> {
    await publishStreamCancel(this.#system, this.#streamId).catch(() => {})
  }

  abort(): Promise<void> {
    return this.cancel()
  }

  /** Grants credit when a grant is due. */
  tick(now: number): void {
    if (this.#credit.isDue(now)) this.#grant()
  }

  /** Drops the queued frames, and ignores further ones. {@link confirm} and {@link cancel} still work. Idempotent. */
  async close(): Promise<void> {
    this.#state = 'closed'
    this.#owner = undefined
    this.#frames = []
    this.#parts.clear()
    await this.#subscription?.close()
  }

  #onFrame(message: Message): void {
    const received = decodeFrame(message)
    if (received === undefined || this.#state !== 'open') return
    this.#lastHeard = performance.now()
    if (received.kind === 'heartbeat') {
      if (received.alive) this.#agentHeard = this.#lastHeard
      if (received.last <= this.#last) return
      this.#state = 'gap'
    } else {
      // A duplicate.
      if (received.number <= this.#last) return
      if (received.number === this.#last + 1) {
        this.#last = received.number
        this.#frames.push(received)
      } else {
        this.#state = 'gap'
      }
    }
    this.#owner?.onFrame()
  }

  #grant(): void {
    // The next grant replaces a lost one.
    this.#system.events.publish(controlChannel(this.#streamId), this.#credit.grant()).catch(() => {})
  }
}

/** The account of a link's credit: granted at half a window, on request, and periodically. */
class Credit {
  readonly #limits: ResolvedStreamLimits
  /** The last frame that was written to the caller, and the bytes of all. */
  #writtenFrames = 0
  #writtenBytes = 0
  #isAsked = false
  #readFrames = 0
  #readBytes = 0
  #grantedFrames = 0
  #grantedBytes = 0
  #nextGrant = Infinity

  constructor(limits: ResolvedStreamLimits) {
    this.#limits = limits
  }

  start(): void {
    this.#nextGrant = firstMoment(performance.now(), this.#limits.creditMs)
  }

  written({ number, body, ask }: StreamFrame): void {
    this.#writtenFrames = number
    this.#writtenBytes += body.length
    if (ask) this.#isAsked = true
  }

  /** Records that the caller has read what was written. Returns true if credit is to be granted now. */
  read(): boolean {
    this.#readFrames = this.#writtenFrames
    this.#readBytes = this.#writtenBytes
    const { windowBytes, windowFrames } = this.#limits
    const bytes = this.#readBytes - this.#grantedBytes
    return this.#isAsked || bytes >= windowBytes / 2 || this.#readFrames - this.#grantedFrames >= windowFrames / 2
  }

  isDue(now: number): boolean {
    return now >= this.#nextGrant
  }

  /** Returns the grant for the frames that were read. */
  grant(): ReturnType<typeof encodeCredit> {
    this.#isAsked = false
    this.#grantedFrames = this.#readFrames
    this.#grantedBytes = this.#readBytes
    this.#nextGrant = performance.now() + this.#limits.creditMs
    return encodeCredit(this.#readFrames, this.#limits.windowBytes)
  }
}

/** Whole events. A large one is in several parts: joining them would block the event loop. */
export type JoinedEvents = Uint8Array | readonly Uint8Array[]

/** Collects the parts of events. */
class EventParts {
  readonly #maxBytes: number
  #parts: Uint8Array[] = []
  #bytes = 0
  #counted = new EventBytes(undefined)

  /** @param maxBytes The size of the largest event, as the caller gets it, in bytes */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Counts the bytes of the parts from now on. */
  countIn(budget: ByteBudget | undefined): void {
    if (budget !== undefined) this.#counted = new EventBytes(budget)
  }

  add({ body, more, cut }: StreamFrame): JoinedEvents | StreamFailure | undefined {
    if (cut) this.clear()
    if (!more && this.#parts.length === 0) return body
    this.#bytes += body.length
    if (this.#bytes > this.#maxBytes) return STREAM_FAILURES.TOO_LARGE
    const refusal = this.#counted.set(this.#bytes)
    if (refusal !== undefined) return busy(refusal)
    this.#parts.push(body)
    if (more) return undefined
    // Small parts are joined: together they may be several events.
    const joined = this.#bytes > LARGE_BODY_BYTES ? this.#parts : Buffer.concat(this.#parts, this.#bytes)
    this.clear()
    return joined
  }

  clear(): void {
    this.#parts = []
    this.#bytes = 0
    this.#counted.set(0)
  }
}
