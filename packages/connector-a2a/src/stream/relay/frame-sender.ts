import { Buffer } from 'node:buffer'

import type { BrokerHandle } from '@signalbox/broker-core'

import { streamChannel } from '../channel/channels.ts'
import type { EndMark } from '../channel/frame.ts'
import { encodeFrame, encodeHeartbeat } from '../channel/frame.ts'
import type { ResolvedStreamLimits } from '../limits.ts'
import { firstMoment } from '../stream-timer.ts'
import type { BudgetWaiter, NodeBudget } from './node-budget.ts'

/** The most characters that events of one event-loop tick add up to in one frame. */
const FRAME_CHARS = 32_768

/** The bytes that a stream with no frame in transit may send when the node's budget is used up. */
const LEAST_BYTES = 16_384

/** Events that wait for credit. */
interface Waiting {
  body: Uint8Array
  readonly end: EndMark | undefined
}

export interface SenderOptions {
  readonly system: BrokerHandle
  readonly streamId: string
  readonly limits: ResolvedStreamLimits
  readonly budget: NodeBudget
  /** Called when all pushed events were sent: more may be read. */
  readonly onRoom: () => void
  /** Called when the broker has refused a frame. */
  readonly onFailure: () => void
}

/** Sends a stream's events as numbered frames, within the credit that the client's node grants. */
export class FrameSender implements BudgetWaiter {
  readonly #options: SenderOptions
  readonly #channel: string
  #windowBytes: number
  /** Events of this event-loop tick that are not a frame yet. */
  #text = ''
  #waiting: Waiting[] = []
  /** The sizes of the frames in transit, oldest first. */
  readonly #onWay: number[] = []
  #onWayBytes = 0
  #sent = 0
  #nextBeat: number
  #agentHeard = false
  #flushing = false
  #ended = false
  #over = false

  constructor(options: SenderOptions) {
    const { streamId, limits } = options
    this.#options = options
    this.#channel = streamChannel(streamId)
    this.#windowBytes = limits.windowBytes
    this.#nextBeat = firstMoment(performance.now(), limits.heartbeatMs)
  }

  /** True while events wait for credit: stop reading. */
  get blocked(): boolean {
    return this.#waiting.length > 0
  }

  /** The bytes of the events that wait for credit. */
  get waitingBytes(): number {
    return this.#waiting.reduce((sum, { body }) => sum + body.byteLength, 0)
  }

  /** True once the client has read the last frame. */
  get settled(): boolean {
    return this.#ended && !this.blocked && this.#onWay.length === 0
  }

  /**
   * Adds text of events, in latin1; `end` marks the last. {@link flush} sends it, or a full frame
   * does.
   */
  push(text: string, end?: EndMark): void {
    if (this.#ended || this.#over) return
    this.#text += text
    if (end !== undefined) this.#ended = true
    if (end !== undefined || this.#text.length >= FRAME_CHARS) {
      this.#gather(end)
      this.#send()
    }
  }

  flush(): void {
    if (this.#text === '' || this.#over) return
    this.#gather(undefined)
    this.#send()
  }

  /** Ends the stream regardless of credit, and drops the events that wait for it. */
  cutShort(text: string, end: EndMark): void {
    if (this.#over || (this.#ended && !this.blocked)) return
    const body = Buffer.from(text, 'latin1')
    this.#publish(encodeFrame({ number: ++this.#sent, body, more: false, ask: false, cut: true, end }))
    this.stop()
  }

  /** Records that the client has read the frames up to `consumed`. */
  grant(consumed: number, windowBytes: number): void {
    if (this.#over) return
    let freed = 0
    while (this.#onWay.length > 0 && this.#sent - this.#onWay.length < consumed) freed += this.#onWay.shift() ?? 0
    this.#onWayBytes -= freed
    this.#windowBytes = Math.min(this.#options.limits.windowBytes, windowBytes)
    if (freed > 0) this.#options.budget.give(freed)
    this.#send()
  }

  roomInBudget(): void {
    this.#send()
  }

  /** Records that the agent has sent bytes; the next heartbeat says so. */
  heard(): void {
    this.#agentHeard = true
  }

  /** Sends a heartbeat when one is due. */
  beat(now: number): void {
    if (now < this.#nextBeat || this.#over) return
    this.#nextBeat = now + this.#options.limits.heartbeatMs
    this.#publish(encodeHeartbeat({ last: this.#sent, alive: this.#agentHeard }))
    this.#agentHeard = false
  }

  /** Stops sending, and releases the stream's share of the budget. Idempotent. */
  stop(): void {
    if (this.#over) return
    this.#over = true
    this.#text = ''
    this.#waiting = []
    this.#options.budget.stopWaiting(this)
    this.#options.budget.give(this.#onWayBytes)
    this.#onWayBytes = 0
  }

  #gather(end: EndMark | undefined): void {
    this.#waiting.push({ body: Buffer.from(this.#text, 'latin1'), end })
    this.#text = ''
  }

  #send(): void {
    // Publishing may bring credit before it returns.
    if (this.#flushing) return
    this.#flushing = true
    const wasBlocked = this.blocked
    for (let next = this.#waiting[0]; next !== undefined && !this.#over; next = this.#waiting[0]) {
      const size = this.#sendable(next.body.length)
      if (size === 0) break
      this.#sendPart(next, size)
    }
    this.#flushing = false
    if (wasBlocked && !this.blocked && !this.#over) this.#options.onRoom()
  }

  #sendPart(next: Waiting, size: number): void {
    const { budget, limits } = this.#options
    const { body, end } = next
    const more = size < body.length
    if (more) next.body = body.subarray(size)
    else this.#waiting.shift()
    budget.take(size)
    this.#onWay.push(size)
    this.#onWayBytes += size
    this.#nextBeat = performance.now() + limits.heartbeatMs
    this.#publish(
      encodeFrame({
        number: ++this.#sent,
        body: more ? body.subarray(0, size) : body,
        more,
        ask: budget.scarce,
        cut: false,
        end: more ? undefined : end,
      }),
    )
  }

  /** Returns the number of bytes, at most `length`, that may be sent now. */
  #sendable(length: number): number {
    const { windowBytes, windowFrames } = this.#options.limits
    const { budget } = this.#options
    if (this.#onWay.length >= windowFrames) return 0
    const free = this.#windowBytes - this.#onWayBytes
    // The largest part is one window. If half a window is in transit, credit is coming: waiting for
    // it avoids splitting events.
    let size = Math.min(length, windowBytes)
    if (size > free && this.#onWayBytes >= this.#windowBytes / 2) return 0
    size = Math.max(0, Math.min(size, free))
    if (size === 0 || budget.hasRoom(size)) return size
    if (this.#onWayBytes > 0) {
      budget.wait(this)
      return 0
    }
    return Math.min(size, LEAST_BYTES)
  }

  #publish(message: ReturnType<typeof encodeFrame>): void {
    this.#options.system.events.publish(this.#channel, message).catch(this.#options.onFailure)
  }
}
