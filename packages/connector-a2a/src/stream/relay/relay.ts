import type { Message, Subscription } from '@signalbox/broker-core'

import { controlChannel } from '../channel/channels.ts'
import { decodeControl } from '../channel/control.ts'
import { STREAM_FAILURES } from '../stream-failures.ts'
import type { ResolvedStreamLimits } from '../limits.ts'
import { resolveLimits } from '../limits.ts'
import type { Timed } from '../stream-timer.ts'
import { StreamTimer } from '../stream-timer.ts'
import type { RelayEnd, RelayOptions } from './relay-options.ts'
import { AgentEvents } from './agent-events.ts'
import type { EventConverter } from './event-converter.ts'
import { FrameSender } from './frame-sender.ts'
import { Upstream } from './upstream.ts'

/**
 * The agent's side of one stream: sends the events of the agent's response within the credit of the
 * client's node.
 */
export class Relay implements Timed {
  readonly #options: RelayOptions
  readonly #limits: ResolvedStreamLimits
  readonly #timer: StreamTimer
  readonly #sender: FrameSender
  readonly #upstream: Upstream
  readonly #events: EventConverter
  #control: Subscription | undefined
  #lastCredit = performance.now()
  #over = false
  readonly #ended = Promise.withResolvers<RelayEnd>()
  readonly #onAbort = (): void => this.#contain(() => this.#interrupt())

  constructor(options: RelayOptions) {
    const { system, streamId, response, budget } = options
    const limits = resolveLimits(options.limits)
    this.#options = options
    this.#events = options.events ?? new AgentEvents(streamId)
    this.#limits = limits
    this.#timer = StreamTimer.for(limits)
    this.#sender = new FrameSender({
      system,
      streamId,
      limits,
      budget,
      onRoom: () => this.#upstream.readOn(),
      onFailure: () => this.#giveUp(),
    })
    const listener = { onOver: () => this.#endIfSettled(), onCrash: (error: unknown) => this.crash(error) }
    this.#upstream = new Upstream(response, this.#events, this.#sender, limits.maxEventBytes, listener, options.held)
  }

  run(): Promise<RelayEnd> {
    this.#timer.add(this)
    this.#options.signal?.addEventListener('abort', this.#onAbort)
    // Without a control channel there is no way to report the failure to the client's node.
    this.#start().catch(() => this.#contain(() => this.#giveUp()))
    return this.#ended.promise
  }

  async #start(): Promise<void> {
    const { system, streamId, signal } = this.#options
    const control = await system.events.subscribe(controlChannel(streamId), {}, (message) =>
      this.#contain(() => this.#onControl(message)),
    )
    if (this.#over) {
      await control.close()
      return
    }
    this.#control = control
    control.closed.then(() => this.#giveUp()).catch((error: unknown) => this.crash(error))
    if (signal?.aborted === true) this.#interrupt()
    else this.#upstream.start()
  }

  /** @inheritdoc */
  tick(now: number): void {
    if (now - this.#lastCredit >= this.#limits.noCreditMs) this.#giveUp()
    this.#upstream.tick(now)
    this.#sender.beat(now)
  }

  /** @inheritdoc Rejects the promise for the end of the stream, and cuts off the agent's response. */
  crash(error: unknown): void {
    this.#ended.reject(error)
    try {
      this.#giveUp()
    } catch {
      this.#options.response.destroy()
    }
  }

  #contain(act: () => void): void {
    try {
      act()
    } catch (error) {
      this.crash(error)
    }
  }

  #onControl(message: Message): void {
    const control = decodeControl(message)
    if (control === undefined || this.#over) return
    if (control.kind === 'cancel') {
      // Another caller than the client may have cancelled; the client then needs a terminal event.
      this.#interrupt()
      return
    }
    this.#lastCredit = performance.now()
    this.#sender.grant(control.consumed, control.windowBytes)
    this.#endIfSettled()
  }

  #interrupt(): void {
    const { text, end = 'error' } = this.#events.failure(STREAM_FAILURES.INTERRUPTED)
    this.#sender.cutShort(text, end)
    this.#giveUp()
  }

  #endIfSettled(): void {
    if (this.#upstream.over && this.#sender.settled) this.#end()
  }

  /** Abandons the stream: no client is left to read it. */
  #giveUp(): void {
    if (this.#over) return
    this.#sender.stop()
    this.#upstream.abort()
    this.#end()
  }

  #end(): void {
    if (this.#over) return
    this.#over = true
    this.#sender.stop()
    this.#timer.delete(this)
    this.#options.signal?.removeEventListener('abort', this.#onAbort)
    this.#control?.close().catch(() => {})
    this.#ended.resolve({ cancelled: this.#upstream.aborted })
  }
}
