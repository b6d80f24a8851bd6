import type { BrokerHandle, Subscription } from '@signalbox/broker-core'
import { Refusal, SseStream } from '@signalbox/http-kit'

import { publishStreamCancel } from '../channel/control.ts'
import type { EndMark, StreamFrame } from '../channel/frame.ts'
import { busy, STREAM_FAILURES } from '../stream-failures.ts'
import type { StreamFailure } from '../events.ts'
import { EVENT_ENVELOPE_BYTES } from '../events.ts'
import type { ResolvedStreamLimits } from '../limits.ts'
import type { StreamForm } from '../stream-form.ts'
import type { Timed } from '../stream-timer.ts'
import { StreamTimer } from '../stream-timer.ts'
import type { AgentStream, PipeOptions, StreamEnd } from './agent-stream.ts'
import { Assembly } from './assembly.ts'
import { Credit } from './credit.ts'
import type { FrameReceiver } from './frame-receiver.ts'
import type { StreamEvent } from './recent-events.ts'
import { RecentEvents } from './recent-events.ts'
import type { HttpResponse } from '@signalbox/http-kit'

/** The client's side of one stream: writes the frames of its channel as fast as the client reads. */
export class ClientStream implements AgentStream, Timed {
  readonly streamId: string
  readonly #system: BrokerHandle
  readonly #limits: ResolvedStreamLimits
  readonly #receiver: FrameReceiver
  readonly #subscription: Subscription
  readonly #form: StreamForm
  readonly #credit: Credit
  readonly #assembly: Assembly
  readonly #recent = new RecentEvents()
  #timer: StreamTimer | undefined
  #response: HttpResponse | undefined
  #sse: SseStream | undefined
  #idleMs = 0
  #endsAt = Infinity
  #lastEvent = 0
  /** The time since when the client has not read. */
  #blockedSince: number | undefined
  /** Bytes that were written and that the client has not read yet. */
  #writtenBytes = 0
  #asked = false
  #written = 0
  /** The terminal event, once written. */
  #end: { readonly mark: EndMark; readonly at: number } | undefined
  /** True if this side ended the stream with an error, which also cancels the agent's side. */
  #failed = false
  /** The failure that ends the stream as soon as there is a response. */
  #ending: StreamFailure | undefined
  #over = false
  readonly #ended = Promise.withResolvers<StreamEnd>()

  constructor(
    system: BrokerHandle,
    streamId: string,
    limits: ResolvedStreamLimits,
    receiver: FrameReceiver,
    subscription: Subscription,
    form: StreamForm,
  ) {
    this.streamId = streamId
    this.#system = system
    this.#limits = limits
    this.#receiver = receiver
    this.#subscription = subscription
    this.#form = form
    this.#credit = new Credit(system, streamId, limits)
    this.#assembly = new Assembly(limits.maxEventBytes + EVENT_ENVELOPE_BYTES)
  }

  pipeTo(response: HttpResponse, options: PipeOptions): Promise<StreamEnd> {
    const { headers, hold, keepAliveMs, idleMs, endsAt = Infinity } = options
    this.#response = response
    response.once('close', () => this.#contain(() => this.#responseOver()))
    if (response.destroyed) {
      this.#responseOver()
      return this.#ended.promise
    }
    this.#idleMs = idleMs
    this.#endsAt = endsAt
    this.#assembly.countIn(hold)
    this.#lastEvent = performance.now()
    this.#sse = new SseStream(response, {
      ...(headers === undefined ? {} : { headers }),
      ...(keepAliveMs === undefined ? {} : { keepAliveMs }),
      ...(hold === undefined ? {} : { hold }),
      // The stream sends a `task.error` event to a slow consumer instead (A11).
      slowConsumerMs: 0,
    })
    this.#timer = StreamTimer.for(this.#limits, idleMs)
    this.#timer.add(this)
    this.#receiver.onChange(() => this.#contain(() => this.#pump()))
    const onLost = (): void => this.#fail(STREAM_FAILURES.INTERRUPTED)
    this.#subscription.closed.then(onLost).catch((error: unknown) => this.crash(error))
    this.#pump()
    if (this.#ending !== undefined) this.#fail(this.#ending)
    return this.#ended.promise
  }

  close(): void {
    this.#ending ??= STREAM_FAILURES.SHUTTING_DOWN
    this.#fail(STREAM_FAILURES.SHUTTING_DOWN)
  }

  get written(): number {
    return this.#written
  }

  get recentEvents(): readonly StreamEvent[] {
    return this.#recent.list()
  }

  get quietMs(): number {
    return performance.now() - this.#lastEvent
  }

  interrupt(): void {
    this.#ending ??= STREAM_FAILURES.INTERRUPTED
    this.#shut(STREAM_FAILURES.INTERRUPTED)
  }

  expire(): void {
    this.#ending ??= STREAM_FAILURES.TIMED_OUT
    this.#shut(STREAM_FAILURES.TIMED_OUT)
  }

  revoke(): void {
    this.#ending ??= STREAM_FAILURES.FORBIDDEN
    this.#shut(STREAM_FAILURES.FORBIDDEN)
  }

  /** @inheritdoc */
  tick(now: number): void {
    if (this.#end !== undefined) {
      // The client has as long for the remaining bytes as for any event.
      if (now - this.#end.at >= this.#limits.slowConsumerMs) this.#response?.destroy()
      return
    }
    this.#credit.tick(now)
    if (Date.now() >= this.#endsAt) this.#shut(STREAM_FAILURES.EXPIRED)
    else if (now - this.#receiver.lastHeard >= this.#limits.silenceMs) this.#fail(STREAM_FAILURES.INTERRUPTED)
    else if (this.#blockedSince !== undefined) {
      if (now - this.#blockedSince >= this.#limits.slowConsumerMs) this.#fail(STREAM_FAILURES.SLOW_CONSUMER)
    } else if (this.#idleMs > 0 && now - this.#agentLife >= this.#idleMs) this.#fail(STREAM_FAILURES.IDLE)
  }

  /** An agent that sends comments works, although it has no event. */
  get #agentLife(): number {
    return Math.max(this.#lastEvent, this.#receiver.agentHeard)
  }

  /** @inheritdoc Rejects the promise for the end of the stream, and cuts off the client's response. */
  crash(error: unknown): void {
    this.#ended.reject(error)
    this.#response?.destroy()
  }

  #contain(act: () => void): void {
    try {
      act()
    } catch (error) {
      this.crash(error)
    }
  }

  /** Writes the received frames until the client stops reading. */
  #pump(): void {
    const sse = this.#sse
    if (sse === undefined || this.#over) return
    while (!sse.blocked && this.#end === undefined) {
      const frame = this.#receiver.next()
      if (frame === undefined) break
      this.#write(sse, frame)
    }
    if (this.#end !== undefined) return
    if (sse.blocked) this.#awaitDrain(sse)
    else {
      this.#taken()
      if (this.#receiver.gap) this.#fail(STREAM_FAILURES.INTERRUPTED)
    }
  }

  #write(sse: SseStream, frame: StreamFrame): void {
    this.#lastEvent = performance.now()
    this.#written = frame.number
    this.#writtenBytes += frame.body.length
    if (frame.ask) this.#asked = true
    const events = this.#assembly.add(frame)
    if (events === 'too large') {
      this.#fail(STREAM_FAILURES.TOO_LARGE)
      return
    }
    if (events instanceof Refusal) {
      this.#fail(busy(events))
      return
    }
    if (events !== undefined) {
      this.#recent.add(events, this.#lastEvent)
      sse.writeText(events)
    }
    if (frame.end !== undefined) this.#finish(sse, frame.end)
  }

  #awaitDrain(sse: SseStream): void {
    if (this.#blockedSince !== undefined) return
    this.#blockedSince = performance.now()
    const onDrained = (): void => {
      this.#blockedSince = undefined
      // The client caused the delay, not the agent.
      this.#lastEvent = performance.now()
      this.#pump()
    }
    sse
      .drained()
      .then(onDrained)
      .catch((error: unknown) => this.crash(error))
  }

  #taken(): void {
    if (this.#writtenBytes === 0) return
    const bytes = this.#writtenBytes
    const asked = this.#asked
    this.#writtenBytes = 0
    this.#asked = false
    this.#credit.taken(this.#written, bytes, asked)
  }

  /** Ends the stream of a client that has lost its permission or whose token has expired. */
  #shut(failure: StreamFailure): void {
    const stalled = this.#sse?.blocked === true
    this.#fail(failure)
    // A client that does not read would keep the response open beyond its time.
    if (stalled) this.#response?.destroy()
  }

  /** Ends the stream with an error of Signalbox, and cancels the agent's side. */
  #fail(failure: StreamFailure): void {
    const sse = this.#sse
    if (sse === undefined || this.#end !== undefined || this.#over) return
    this.#failed = true
    const { text, code } = this.#form.failure(failure)
    sse.writeText(text)
    this.#finish(sse, code)
    this.#cancel()
  }

  #finish(sse: SseStream, mark: EndMark): void {
    this.#end = { mark, at: performance.now() }
    this.#stopReceiving()
    sse.end()
  }

  #stopReceiving(): void {
    this.#receiver.stop()
    this.#assembly.clear()
    this.#subscription.close().catch(() => {})
  }

  #cancel(): void {
    publishStreamCancel(this.#system, this.streamId).catch(() => {})
  }

  #responseOver(): void {
    if (this.#over) return
    this.#over = true
    this.#timer?.delete(this)
    this.#stopReceiving()
    const mark = this.#end?.mark
    const whole = this.#response?.writableFinished === true
    if (!this.#failed) {
      // The agent's node waits for the grant that confirms the delivery.
      if (whole && mark !== undefined) this.#credit.settle(this.#written)
      else this.#cancel()
    }
    this.#ended.resolve(streamEnd(mark, whole))
  }
}

function streamEnd(mark: EndMark | undefined, whole: boolean): StreamEnd {
  if (typeof mark === 'number') return { outcome: 'error', errorCode: mark }
  return { outcome: mark === undefined || !whole ? 'disconnected' : mark }
}
