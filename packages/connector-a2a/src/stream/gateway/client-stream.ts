import type { ServerResponse } from 'node:http'

import type { BrokerHandle, Subscription } from '@signalbox/broker-core'
import { SseStream } from '@signalbox/http-kit'

import { publishStreamCancel } from '../channel/control.ts'
import type { EndMark, StreamFrame } from '../channel/frame.ts'
import { STREAM_FAILURES } from '../stream-failures.ts'
import type { StreamFailure } from '../events.ts'
import { EVENT_ENVELOPE_BYTES, failureText } from '../events.ts'
import type { ResolvedStreamLimits } from '../limits.ts'
import type { Timed } from '../stream-timer.ts'
import { StreamTimer } from '../stream-timer.ts'
import type { AgentStream, PipeOptions, StreamEnd } from './agent-stream.ts'
import { Assembly } from './assembly.ts'
import { Credit } from './credit.ts'
import type { FrameReceiver } from './frame-receiver.ts'

/** One stream on the client's side: what its channel brings is written as fast as the client takes it. */
export class ClientStream implements AgentStream, Timed {
  readonly streamId: string
  readonly #system: BrokerHandle
  readonly #limits: ResolvedStreamLimits
  readonly #receiver: FrameReceiver
  readonly #subscription: Subscription
  readonly #credit: Credit
  readonly #assembly: Assembly
  #timer: StreamTimer | undefined
  #response: ServerResponse | undefined
  #sse: SseStream | undefined
  #idleMs = 0
  #endsAt = Infinity
  #lastEvent = 0
  /** Since when the client takes nothing. */
  #blockedSince: number | undefined
  /** Written, and not yet taken by the client. */
  #writtenBytes = 0
  #asked = false
  #written = 0
  /** The terminal event was written. */
  #end: { readonly mark: EndMark; readonly at: number } | undefined
  /** We ended it ourselves, and the agent's side with it. */
  #failed = false
  /** What ends it as soon as there is a response. */
  #ending: StreamFailure | undefined
  #over = false
  readonly #ended = Promise.withResolvers<StreamEnd>()

  constructor(
    system: BrokerHandle,
    streamId: string,
    limits: ResolvedStreamLimits,
    receiver: FrameReceiver,
    subscription: Subscription,
  ) {
    this.streamId = streamId
    this.#system = system
    this.#limits = limits
    this.#receiver = receiver
    this.#subscription = subscription
    this.#credit = new Credit(system, streamId, limits)
    this.#assembly = new Assembly(limits.maxEventBytes + EVENT_ENVELOPE_BYTES)
  }

  pipeTo(response: ServerResponse, options: PipeOptions): Promise<StreamEnd> {
    const { headers, hold, keepAliveMs, idleMs, endsAt = Infinity } = options
    this.#response = response
    response.once('close', () => this.#contain(() => this.#responseOver()))
    if (response.destroyed) {
      this.#responseOver()
      return this.#ended.promise
    }
    this.#idleMs = idleMs
    this.#endsAt = endsAt
    this.#lastEvent = performance.now()
    this.#sse = new SseStream(response, {
      ...(headers === undefined ? {} : { headers }),
      ...(keepAliveMs === undefined ? {} : { keepAliveMs }),
      ...(hold === undefined ? {} : { hold }),
      // Here it gets an event of its protocol (A11).
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

  revoke(): void {
    this.#ending ??= STREAM_FAILURES.FORBIDDEN
    this.#shut(STREAM_FAILURES.FORBIDDEN)
  }

  /** @inheritdoc */
  tick(now: number): void {
    if (this.#end !== undefined) {
      // The client has as long for what is left as it had for any event.
      if (now - this.#end.at >= this.#limits.slowConsumerMs) this.#response?.destroy()
      return
    }
    this.#credit.tick(now)
    if (Date.now() >= this.#endsAt) this.#shut(STREAM_FAILURES.EXPIRED)
    else if (now - this.#receiver.lastHeard >= this.#limits.silenceMs) this.#fail(STREAM_FAILURES.INTERRUPTED)
    else if (this.#blockedSince !== undefined) {
      if (now - this.#blockedSince >= this.#limits.slowConsumerMs) this.#fail(STREAM_FAILURES.SLOW_CONSUMER)
    } else if (this.#idleMs > 0 && now - this.#lastEvent >= this.#idleMs) this.#fail(STREAM_FAILURES.IDLE)
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

  /** Writes what came, as far as the client takes it. */
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
    if (events !== undefined) sse.writeText(events)
    if (frame.end !== undefined) this.#finish(sse, frame.end)
  }

  #awaitDrain(sse: SseStream): void {
    if (this.#blockedSince !== undefined) return
    this.#blockedSince = performance.now()
    const onDrained = (): void => {
      this.#blockedSince = undefined
      // It was not the agent who let the time pass.
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

  /** Ends the stream of a client that may not have it any more. */
  #shut(failure: StreamFailure): void {
    const stalled = this.#sse?.blocked === true
    this.#fail(failure)
    // Who takes nothing would hold on to the response beyond its time.
    if (stalled) this.#response?.destroy()
  }

  /** Ends the stream with an error of our own, and the agent's side with it. */
  #fail(failure: StreamFailure): void {
    const sse = this.#sse
    if (sse === undefined || this.#end !== undefined || this.#over) return
    this.#failed = true
    sse.writeText(failureText(this.streamId, failure))
    this.#finish(sse, failure.code)
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
      // The agent's node waits to hear that the client has it all.
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
