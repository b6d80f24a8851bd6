import { Buffer } from 'node:buffer'

import type { BrokerHandle, Message, MessageInput, Subscription } from '@signalbox/broker-core'

import type { ResolvedStreamLimits } from '../limits.ts'
import { firstMoment } from '../stream-timer.ts'
import type { EndMark } from './messages.ts'
import { controlChannel, decodeControl, encodeFrame, encodeHeartbeat, streamChannel } from './messages.ts'
import type { BudgetWaiter, NodeBudget } from './node-budget.ts'

/** The most characters that events of one event-loop tick add up to in one frame. */
const FRAME_CHARS = 32_768

/** The bytes that a stream with no frame in transit may send when the node's budget is used up. */
const LEAST_BYTES = 16_384

/** The stream that sends its events over a link. Its methods do nothing once it is over. */
export interface SenderOwner {
  /** Called when all pushed events were sent: more may be read. */
  onRoom(): void
  /** Called when the caller has read the last frame. */
  onDelivered(): void
  /** Called when the caller's node, or another caller, cancels the stream. */
  onCancel(): void
  /** Called when no caller is left to read the stream, or the broker has refused a frame. */
  onLost(): void
  /** Called with the error that one of these methods has thrown. */
  crash(error: unknown): void
}

export interface SenderOptions {
  readonly system: BrokerHandle
  readonly streamId: string
  readonly limits: ResolvedStreamLimits
  readonly budget: NodeBudget
  readonly owner: SenderOwner
}

/** Events that wait for credit. */
interface Waiting {
  body: Uint8Array
  /** True if the event continues in the next body. */
  readonly continues: boolean
  readonly end: EndMark | undefined
}

/** The destination of the events of an agent's stream. */
export interface StreamSink {
  /** Events may be pushed before it is open. @throws BrokerError ENGINE_UNAVAILABLE */
  open(): Promise<void>
  /** True while events wait: stop reading. */
  readonly blocked: boolean
  /** The bytes of the events that wait. */
  readonly waitingBytes: number
  /** True once the last event arrived. */
  readonly delivered: boolean
  /** Adds text of events, in latin1; `end` marks the last. */
  push(text: string, end: EndMark | undefined): void
  /** Adds a large event in parts; `end` marks the last. */
  pushLarge(parts: readonly Uint8Array[], end: EndMark): void
  /** Sends the text that was pushed in this event-loop tick. */
  flush(): void
  /** Ends the stream at once. */
  cutShort(text: string, end: EndMark): void
  /** Records that the agent has sent bytes, which need not be an event. */
  heard(): void
  tick(now: number): void
  /** Idempotent. */
  close(): void
}

/**
 * The agent's end of a stream's link: sends events as numbered frames, within the credit that the caller's node grants.
 */
export class LinkSender implements StreamSink, BudgetWaiter {
  readonly #options: SenderOptions
  /** `ending`: the last event was pushed. */
  #state: 'open' | 'ending' | 'closed' = 'open'
  #control: Subscription | undefined
  #windowBytes: number
  #lastCredit = performance.now()
  /** Events of this event-loop tick that are not a frame yet. */
  #text = ''
  #waiting: Waiting[] = []
  /** The sizes of the frames in transit, oldest first. */
  readonly #inTransit: number[] = []
  #inTransitBytes = 0
  #sent = 0
  #nextBeat: number
  #agentHeard = false
  #isSending = false

  constructor(options: SenderOptions) {
    this.#options = options
    this.#windowBytes = options.limits.windowBytes
    this.#nextBeat = firstMoment(performance.now(), options.limits.heartbeatMs)
  }

  /**
   * Subscribes to the control channel. Events may be pushed before that.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async open(): Promise<void> {
    const { system, streamId, owner } = this.#options
    const control = await system.events.subscribe(controlChannel(streamId), {}, (message) => this.#onControl(message))
    if (this.#state === 'closed') {
      await control.close()
      return
    }
    this.#control = control
    control.closed.then(() => owner.onLost()).catch((error: unknown) => owner.crash(error))
  }

  /** True while events wait for credit: stop reading. */
  get blocked(): boolean {
    return this.#waiting.length > 0
  }

  /** The bytes of the events that wait for credit. */
  get waitingBytes(): number {
    return this.#waiting.reduce((sum, { body }) => sum + body.byteLength, 0)
  }

  /** True once the caller has read the last frame. */
  get delivered(): boolean {
    return this.#state === 'ending' && !this.blocked && this.#inTransit.length === 0
  }

  /** Adds text of events, in latin1; `end` marks the last. {@link flush} sends it, or a full frame does. */
  push(text: string, end: EndMark | undefined): void {
    if (this.#state !== 'open') return
    this.#text += text
    if (end !== undefined) this.#state = 'ending'
    if (end !== undefined || this.#text.length >= FRAME_CHARS) this.#sendText(end)
  }

  /** Adds a large event in parts; `end` marks the last. Sends it. */
  pushLarge(parts: readonly Uint8Array[], end: EndMark): void {
    if (this.#state !== 'open') return
    this.flush()
    this.#state = 'ending'
    const last = parts.length - 1
    parts.forEach((body, index) => {
      this.#waiting.push({ body, continues: index < last, end: index < last ? undefined : end })
    })
    this.#send()
  }

  /** Sends the text that was pushed in this event-loop tick. */
  flush(): void {
    if (this.#text !== '') this.#sendText(undefined)
  }

  /** Ends the stream regardless of credit, and drops the events that wait for it. */
  cutShort(text: string, end: EndMark): void {
    if (this.#state === 'closed' || (this.#state === 'ending' && !this.blocked)) return
    const body = Buffer.from(text, 'latin1')
    this.#publish(encodeFrame({ number: ++this.#sent, body, more: false, ask: false, cut: true, end }))
    this.close()
  }

  /** Records that the agent has sent bytes, which need not be an event; the next heartbeat says so. */
  heard(): void {
    this.#agentHeard = true
  }

  /** Sends a heartbeat when one is due, and reports a caller's node that grants nothing any more. */
  tick(now: number): void {
    const { limits, owner } = this.#options
    if (now - this.#lastCredit >= limits.noCreditMs) owner.onLost()
    if (now < this.#nextBeat || this.#state === 'closed') return
    this.#nextBeat = now + limits.heartbeatMs
    this.#publish(encodeHeartbeat({ last: this.#sent, alive: this.#agentHeard }))
    this.#agentHeard = false
  }

  /** Stops sending, and releases the stream's share of the budget. Idempotent. */
  close(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#text = ''
    this.#waiting = []
    this.#options.budget.stopWaiting(this)
    this.#options.budget.give(this.#inTransitBytes)
    this.#inTransitBytes = 0
    this.#control?.close().catch(() => {})
  }

  roomInBudget(): void {
    this.#send()
  }

  #onControl(message: Message): void {
    const control = decodeControl(message)
    if (control === undefined || this.#state === 'closed') return
    const { owner } = this.#options
    try {
      if (control.kind === 'cancel') owner.onCancel()
      else this.#granted(control.consumed, control.windowBytes)
    } catch (error) {
      owner.crash(error)
    }
  }

  /** The caller has read the frames up to `consumed`. */
  #granted(consumed: number, windowBytes: number): void {
    this.#lastCredit = performance.now()
    let freed = 0
    while (this.#inTransit.length > 0 && this.#sent - this.#inTransit.length < consumed) {
      freed += this.#inTransit.shift() ?? 0
    }
    this.#inTransitBytes -= freed
    this.#windowBytes = Math.min(this.#options.limits.windowBytes, windowBytes)
    if (freed > 0) this.#options.budget.give(freed)
    this.#send()
    if (this.delivered) this.#options.owner.onDelivered()
  }

  #sendText(end: EndMark | undefined): void {
    this.#waiting.push({ body: Buffer.from(this.#text, 'latin1'), continues: false, end })
    this.#text = ''
    this.#send()
  }

  #send(): void {
    // Publishing may bring credit before it returns.
    if (this.#isSending) return
    this.#isSending = true
    const wasBlocked = this.blocked
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const size = this.#sendable(next.body.length)
      if (size === 0) break
      this.#sendPart(next, size)
    }
    this.#isSending = false
    if (wasBlocked && !this.blocked && this.#state !== 'closed') this.#options.owner.onRoom()
  }

  #sendPart(next: Waiting, size: number): void {
    const { budget, limits } = this.#options
    const { body, continues, end } = next
    const isPart = size < body.length
    if (isPart) next.body = body.subarray(size)
    else this.#waiting.shift()
    budget.take(size)
    this.#inTransit.push(size)
    this.#inTransitBytes += size
    this.#nextBeat = performance.now() + limits.heartbeatMs
    // The frame itself shows that the agent lives.
    this.#agentHeard = false
    this.#publish(
      encodeFrame({
        number: ++this.#sent,
        body: isPart ? body.subarray(0, size) : body,
        more: isPart || continues,
        ask: budget.scarce,
        cut: false,
        end: isPart ? undefined : end,
      }),
    )
  }

  /** Returns the number of bytes, at most `length`, that may be sent now. */
  #sendable(length: number): number {
    const { limits, budget } = this.#options
    const { windowBytes, windowFrames } = limits
    if (this.#inTransit.length >= windowFrames) return 0
    const free = this.#windowBytes - this.#inTransitBytes
    // The largest part is one window. If half a window is in transit, credit is coming: waiting for
    // it avoids splitting events.
    let size = Math.min(length, windowBytes)
    if (size > free && this.#inTransitBytes >= this.#windowBytes / 2) return 0
    size = Math.max(0, Math.min(size, free))
    if (size === 0 || budget.hasRoom(size)) return size
    if (this.#inTransitBytes > 0) {
      budget.wait(this)
      return 0
    }
    return Math.min(size, LEAST_BYTES)
  }

  #publish(message: MessageInput): void {
    const { system, streamId, owner } = this.#options
    system.events.publish(streamChannel(streamId), message).catch(() => owner.onLost())
  }
}
