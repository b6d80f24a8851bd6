import type { Message } from '@signalbox/broker-core'

import type { StreamFrame } from '../channel/frame.ts'
import { decodeFrame } from '../channel/frame.ts'

/** Queues the frames of a stream in order. The granted credit bounds the queue. */
export class FrameReceiver {
  #frames: StreamFrame[] = []
  #last = 0
  #gap = false
  #lastHeard = performance.now()
  #agentHeard = 0
  #onChange: (() => void) | undefined

  /** Receives the messages of the stream's channel. */
  readonly listener = (message: Message): void => {
    const received = decodeFrame(message)
    if (received === undefined || this.#gap) return
    this.#lastHeard = performance.now()
    if (received.kind === 'heartbeat') {
      if (received.alive) this.#agentHeard = this.#lastHeard
      if (received.last <= this.#last) return
      this.#gap = true
    } else {
      // A duplicate.
      if (received.number <= this.#last) return
      if (received.number === this.#last + 1) {
        this.#last = received.number
        this.#frames.push(received)
      } else {
        this.#gap = true
      }
    }
    this.#onChange?.()
  }

  /** The time of the last message of the agent's node, as a value of `performance.now()`. */
  get lastHeard(): number {
    return this.#lastHeard
  }

  /** The last time when a heartbeat said that the agent had sent bytes without an event; 0 for never. */
  get agentHeard(): number {
    return this.#agentHeard
  }

  /**
   * True if a frame is missing: events are delivered at most once. No frame is queued after the
   * gap.
   */
  get gap(): boolean {
    return this.#gap
  }

  /** Sets the listener that is called after each new frame, and after a gap. */
  onChange(listener: () => void): void {
    this.#onChange = listener
  }

  next(): StreamFrame | undefined {
    return this.#frames.shift()
  }

  /** Drops the queued frames, and ignores further ones. */
  stop(): void {
    this.#onChange = undefined
    this.#gap = true
    this.#frames = []
  }
}
