import { randomUUID } from 'node:crypto'
import type { OutgoingHttpHeaders } from 'node:http'

import type { BrokerHandle } from '@signalbox/broker-core'
import type { HttpResponse, RequestHold } from '@signalbox/http-kit'
import { SseStream } from '@signalbox/http-kit'

import type { AgentReply } from '../requests/agent-reply.ts'
import type { AgentRequestOptions, AgentRequests } from '../requests/agent-requests.ts'
import type { FailureEncoder } from './events.ts'
import { ownFailures } from './events.ts'
import type { StreamFailure } from './failures.ts'
import { STREAM_FAILURES } from './failures.ts'
import type { ResolvedStreamLimits, StreamLimits } from './limits.ts'
import { resolveLimits } from './limits.ts'
import type { EndMark, StreamFrame } from './link/messages.ts'
import type { FrameSource, ReceiverOwner } from './link/receiver.ts'
import { LinkReceiver } from './link/receiver.ts'
import type { StreamEvent } from './recent-events.ts'
import { RecentEvents } from './recent-events.ts'
import type { Timed } from './stream-timer.ts'
import { StreamTimer } from './stream-timer.ts'

export interface OpenStreamOptions {
  readonly system: BrokerHandle
  readonly requests: AgentRequests
  readonly agentId: string
  /** The JSON-RPC request that the agent gets, byte for byte. */
  readonly body: Uint8Array
  /** Caller, headers, time-out and signal. The stream's id is added. */
  readonly request: Omit<AgentRequestOptions, 'streamId' | 'acceptOnly'>
  readonly limits: StreamLimits
  /** Writes the errors that end the stream. @default as the gateway's own events */
  readonly failures?: FailureEncoder | undefined
}

/** A stream that an agent has opened, and the reply with which it did so. */
export interface OpenedStream {
  readonly stream: CallerStream
  readonly opened: AgentReply
}

/**
 * Opens a stream at an agent. After a 2xx status the agent's node relays the events; any other reply is `refused`, and
 * so is a plain answer that came whole.
 * @throws BrokerError as AgentRequests.request does, and the reason of the request's signal
 */
export async function openStream(options: OpenStreamOptions): Promise<OpenedStream | { readonly refused: AgentReply }> {
  const { system, requests, agentId, body, request } = options
  const streamId = randomUUID()
  const limits = resolveLimits(options.limits)
  // Opened before the request, so that no event is missed.
  const link = await LinkReceiver.open(system, streamId, limits)
  try {
    const reply = await requests.request(agentId, body, { ...request, streamId })
    if (reply.failure === undefined && reply.whole !== true && reply.status >= 200 && reply.status < 300) {
      const failures = options.failures ?? ownFailures(streamId)
      return { stream: new CallerStream(streamId, link, limits, failures), opened: reply }
    }
    await link.close()
    return { refused: reply }
  } catch (error) {
    await link.close()
    // The agent may have started nevertheless.
    await link.cancel()
    throw error
  }
}

/** The caller's settings for a stream. */
export interface PipeOptions {
  /** Headers to send in addition to the SSE headers. */
  readonly headers?: OutgoingHttpHeaders | undefined
  /** Time between keepalive comments, in ms. @default 30000 */
  readonly keepAliveMs?: number | undefined
  /** Time without an event of the agent after which the stream ends, in ms (MaxSSEIdleSeconds); 0 turns it off. */
  readonly idleMs: number
  /** The time at which the caller's token expires, in ms since the epoch. The stream ends then. @default never */
  readonly endsAt?: number | undefined
  /** Counts the bytes that the caller has not read, and those of an event that is being joined. @default no counting */
  readonly hold?: Pick<RequestHold, 'setUnread' | 'charge' | 'discharge'> | undefined
}

/** The end of a stream, for its caller. */
export interface StreamEnd {
  /** `done` or `error` after that terminal event; `disconnected` if the caller left before it was delivered. */
  readonly outcome: 'done' | 'error' | 'disconnected'
  /** The code of a `task.error` that Signalbox raised; absent if the error is the agent's own. */
  readonly errorCode?: number
}

/** The states of a stream on the caller's side, in their order. The README of this folder draws them. */
type State =
  /** The agent has opened the stream; its caller's response is not known yet. */
  | 'waiting'
  | 'writing'
  /** The terminal event was written; the caller has not read all yet. */
  | 'ending'
  | 'over'

/** The terminal event of a stream. */
interface TerminalEvent {
  readonly mark: EndMark
  readonly at: number
  /** True if this side has raised it, and has cancelled the agent's side. */
  readonly isOwn: boolean
}

/** The caller's side of one stream: writes the events of its link as fast as the caller reads them. */
export class CallerStream implements ReceiverOwner, Timed {
  readonly streamId: string
  readonly #link: FrameSource
  readonly #limits: ResolvedStreamLimits
  readonly #failures: FailureEncoder
  readonly #recent = new RecentEvents()
  #state: State = 'waiting'
  #options: PipeOptions = { idleMs: 0 }
  #response: HttpResponse | undefined
  #sse: SseStream | undefined
  #timer: StreamTimer | undefined
  #lastEvent = 0
  /** The time since when the caller has not read. */
  #blockedSince: number | undefined
  #written = 0
  #terminal: TerminalEvent | undefined
  /** The failure that was asked for before there was a response. */
  #asked: StreamFailure | undefined
  readonly #ended = Promise.withResolvers<StreamEnd>()

  constructor(streamId: string, link: FrameSource, limits: ResolvedStreamLimits, failures: FailureEncoder) {
    this.streamId = streamId
    this.#link = link
    this.#limits = limits
    this.#failures = failures
  }

  /** The frames that were written to the caller. */
  get written(): number {
    return this.#written
  }

  /** The last events that were written to the caller, oldest first. */
  get recentEvents(): readonly StreamEvent[] {
    return this.#recent.list()
  }

  /** The time since the last frame, or since the stream began, in ms. */
  get quietMs(): number {
    return performance.now() - this.#lastEvent
  }

  /**
   * Answers with the agent's events; it owns the response from now on. Resolves when the response is over. Rejects only
   * for a bug, after it has cut off the response. Call it once and at once, even if the caller has disconnected.
   */
  pipeTo(response: HttpResponse, options: PipeOptions): Promise<StreamEnd> {
    const { headers, hold, keepAliveMs, idleMs } = options
    this.#response = response
    response.once('close', () => this.#contain(() => this.#responseOver()))
    if (response.destroyed) {
      this.#responseOver()
      return this.#ended.promise
    }
    this.#options = options
    this.#lastEvent = performance.now()
    this.#sse = new SseStream(response, {
      ...(headers === undefined ? {} : { headers }),
      ...(keepAliveMs === undefined ? {} : { keepAliveMs }),
      ...(hold === undefined ? {} : { hold }),
      // The stream sends a `task.error` event to a slow consumer instead (A11).
      slowConsumerMs: 0,
    })
    this.#state = 'writing'
    this.#timer = StreamTimer.for(this.#limits, idleMs)
    this.#timer.add(this)
    this.#link.start(this, hold)
    this.#pump()
    if (this.#asked !== undefined) this.#fail(this.#asked)
    return this.#ended.promise
  }

  /**
   * Ends the stream with an error, and cancels the agent's side. Cuts off a caller that does not read, which would keep
   * the response open, except at a shutdown: then the listener does that. Idempotent.
   */
  end(failure: StreamFailure): void {
    this.#asked ??= failure
    const stalled = this.#sse?.blocked === true && failure !== STREAM_FAILURES.SHUTTING_DOWN
    this.#fail(failure)
    if (stalled) this.#response?.destroy()
  }

  /** Ends the stream for all its readers, and cancels the agent's side. For operators. */
  abort(): void {
    this.end(STREAM_FAILURES.INTERRUPTED)
    void this.#link.abort()
  }

  /** @inheritdoc */
  tick(now: number): void {
    const { idleMs, endsAt = Infinity } = this.#options
    const { silenceMs, slowConsumerMs } = this.#limits
    if (this.#terminal !== undefined) {
      // The slow-consumer time-out also applies to the remaining bytes.
      if (now - this.#terminal.at >= slowConsumerMs) this.#response?.destroy()
      return
    }
    this.#link.tick(now)
    if (Date.now() >= endsAt) this.end(STREAM_FAILURES.EXPIRED)
    else if (now - this.#link.lastHeard >= silenceMs) this.#fail(STREAM_FAILURES.INTERRUPTED)
    else if (this.#blockedSince !== undefined) {
      if (now - this.#blockedSince >= slowConsumerMs) this.#fail(STREAM_FAILURES.SLOW_CONSUMER)
    } else if (idleMs > 0 && now - this.#agentLife >= idleMs) this.#fail(STREAM_FAILURES.IDLE)
  }

  /** An agent that sends comments works, although it has no event. */
  get #agentLife(): number {
    return Math.max(this.#lastEvent, this.#link.agentHeard)
  }

  /** @inheritdoc */
  onFrame(): void {
    this.#contain(() => this.#pump())
  }

  /** @inheritdoc */
  onLost(): void {
    this.#fail(STREAM_FAILURES.INTERRUPTED)
  }

  /** @inheritdoc Rejects the promise for the end of the stream, and cuts off the caller's response. */
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

  /** Writes the received frames until the caller stops reading. */
  #pump(): void {
    const sse = this.#sse
    if (sse === undefined) return
    while (!sse.blocked && this.#state === 'writing') {
      const frame = this.#link.next()
      if (frame === undefined) break
      this.#write(sse, frame)
    }
    if (this.#state !== 'writing') return
    if (sse.blocked) this.#awaitDrain(sse)
    else {
      this.#link.read()
      if (this.#link.gap) this.#fail(STREAM_FAILURES.INTERRUPTED)
    }
  }

  #write(sse: SseStream, frame: StreamFrame): void {
    this.#lastEvent = performance.now()
    this.#written = frame.number
    const events = this.#link.join(frame)
    if (events !== undefined && 'code' in events) {
      this.#fail(events)
      return
    }
    if (events !== undefined) {
      this.#recent.add(events, this.#lastEvent)
      sse.writeText(events)
    }
    if (frame.end !== undefined) this.#finish(sse, frame.end, false)
  }

  #awaitDrain(sse: SseStream): void {
    if (this.#blockedSince !== undefined) return
    this.#blockedSince = performance.now()
    const onDrained = (): void => {
      this.#blockedSince = undefined
      // The caller caused the delay, not the agent.
      this.#lastEvent = performance.now()
      this.#pump()
    }
    sse
      .drained()
      .then(onDrained)
      .catch((error: unknown) => this.crash(error))
  }

  /** Ends the stream with an error of Signalbox, and cancels the agent's side. */
  #fail(failure: StreamFailure): void {
    const sse = this.#sse
    if (sse === undefined || this.#state !== 'writing') return
    const { text, code } = this.#failures.failure(failure)
    sse.writeText(text)
    this.#finish(sse, code, true)
    void this.#link.cancel()
  }

  #finish(sse: SseStream, mark: EndMark, isOwn: boolean): void {
    this.#state = 'ending'
    this.#terminal = { mark, at: performance.now(), isOwn }
    this.#closeLink()
    sse.end()
  }

  #closeLink(): void {
    this.#link.close().catch(() => {})
  }

  #responseOver(): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#timer?.delete(this)
    this.#closeLink()
    const isWhole = this.#response?.writableFinished === true
    if (this.#terminal?.isOwn !== true) {
      // The agent's node waits for the grant that confirms the delivery.
      if (isWhole && this.#terminal !== undefined) this.#link.confirm()
      else void this.#link.cancel()
    }
    this.#ended.resolve(streamEnd(this.#terminal?.mark, isWhole))
  }
}

function streamEnd(mark: EndMark | undefined, isWhole: boolean): StreamEnd {
  if (typeof mark === 'number') return { outcome: 'error', errorCode: mark }
  return { outcome: mark === undefined || !isWhole ? 'disconnected' : mark }
}
