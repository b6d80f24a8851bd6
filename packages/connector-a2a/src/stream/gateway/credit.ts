import type { BrokerHandle } from '@signalbox/broker-core'

import { controlChannel } from '../channel/channels.ts'
import { encodeCredit } from '../channel/control.ts'
import type { ResolvedStreamLimits } from '../limits.ts'
import { firstMoment } from '../stream-timer.ts'

/**
 * Grants credit to the agent's node as the client reads frames: at half a window, on request, and
 * periodically.
 */
export class Credit {
  readonly #system: BrokerHandle
  readonly #channel: string
  readonly #limits: ResolvedStreamLimits
  #takenFrames = 0
  #takenBytes = 0
  #grantedFrames = 0
  #grantedBytes = 0
  #nextGrant: number

  constructor(system: BrokerHandle, streamId: string, limits: ResolvedStreamLimits) {
    this.#system = system
    this.#channel = controlChannel(streamId)
    this.#limits = limits
    this.#nextGrant = firstMoment(performance.now(), limits.creditMs)
  }

  /** Records that the client has read all frames up to this one. */
  taken(frame: number, bytes: number, asked: boolean): void {
    this.#takenFrames = frame
    this.#takenBytes += bytes
    const { windowBytes, windowFrames } = this.#limits
    if (
      asked ||
      this.#takenBytes - this.#grantedBytes >= windowBytes / 2 ||
      this.#takenFrames - this.#grantedFrames >= windowFrames / 2
    ) {
      this.grant()
    }
  }

  /** Records that the client has read the last frame, and grants. */
  settle(frame: number): void {
    this.#takenFrames = frame
    this.grant()
  }

  tick(now: number): void {
    if (now >= this.#nextGrant) this.grant()
  }

  grant(): void {
    this.#grantedFrames = this.#takenFrames
    this.#grantedBytes = this.#takenBytes
    this.#nextGrant = performance.now() + this.#limits.creditMs
    const credit = encodeCredit(this.#takenFrames, this.#limits.windowBytes)
    // The next grant replaces a lost one.
    this.#system.events.publish(this.#channel, credit).catch(() => {})
  }
}
