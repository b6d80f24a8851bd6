import type { Message } from '@signalbox/broker-core'

import type { StreamFrame } from '../channel/frame.ts'
import { decodeFrame } from '../channel/frame.ts'

/** The frames of a stream in their order. What came and was not yet taken is bounded by the credit that was granted. */
export class FrameReceiver {
  #frames: StreamFrame[] = []
  #last = 0
  #gap = false
  #lastHeard = performance.now()
  #onChange: (() => void) | undefined

  /** Takes what comes on the stream's channel. */
  readonly listener = (message: Message): void => {
    const received = decodeFrame(message)
    if (received === undefined || this.#gap) return
    this.#lastHeard = performance.now()
    if (received.kind === 'heartbeat') {
      if (received.last <= this.#last) return
      this.#gap = true
    } else {
      // One that came twice.
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

  /** When the agent's node was last heard of, as `performance.now()` has it. */
  get lastHeard(): number {
    return this.#lastHeard
  }

  /** A frame is missing: events are delivered at most once. None comes after it. */
  get gap(): boolean {
    return this.#gap
  }

  /** Calls back whenever there is something new. */
  onChange(listener: () => void): void {
    this.#onChange = listener
  }

  next(): StreamFrame | undefined {
    return this.#frames.shift()
  }

  /** Takes nothing more. */
  stop(): void {
    this.#onChange = undefined
    this.#gap = true
    this.#frames = []
  }
}
