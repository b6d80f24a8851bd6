import type { EventSourceMessage } from 'eventsource-parser'

import type { ClientContext, ErrorListener, Running } from './client-context.ts'
import { callSignal, NO_TRACE } from './client-context.ts'
import type { SignalboxError } from './errors.ts'
import { followStream, streamFailure } from './event-stream.ts'
import type { Call } from './transport.ts'

/** The options of every subscription. */
export interface SubscribeOptions {
  /** A consumer group: each message goes to one of its subscribers. */
  readonly group?: string | undefined
  /** Ends the subscription. */
  readonly signal?: AbortSignal | undefined
  /** Receives errors of the handler and of the connection, which is made again. @default the client's */
  readonly onError?: ErrorListener | undefined
}

/** A subscription. It connects again when its stream ends or breaks. */
export interface Subscription extends AsyncDisposable {
  /** Resolves when the server has accepted the subscription: later messages arrive. */
  readonly ready: Promise<void>
  /** Resolves when the subscription has ended; rejects with an error that no other attempt can cure. */
  readonly closed: Promise<void>
  /** Ends the subscription, and waits for the handler. Idempotent. */
  close(): Promise<void>
}

/** The request of a stream. */
export type StreamRequest = Pick<Call, 'path' | 'query' | 'headers'>

/** The behavior of a kind of subscription. */
export interface SubscriptionKind {
  /** Returns the request of the next connection. */
  readonly request: () => StreamRequest
  /** Handles a message. The stream is not read on before it resolves. */
  readonly received: (event: EventSourceMessage, signal: AbortSignal) => void | Promise<void>
  /** Handles a new connection that replaces another one. */
  readonly reconnected?: (() => void) | undefined
  /** Handles an `error` event of the stream. Returns `true` if the subscription ends. */
  readonly failed: (error: SignalboxError) => boolean
  /** Waits for the handlers that run. */
  readonly settled?: (() => Promise<void>) | undefined
}

/** Starts a subscription. */
export function subscribe(context: ClientContext, options: SubscribeOptions, kind: SubscriptionKind): Subscription {
  return new StreamSubscription(context, options, kind)
}

class StreamSubscription implements Subscription, Running {
  readonly ready: Promise<void>
  readonly closed: Promise<void>
  readonly #stop = new AbortController()

  constructor(context: ClientContext, { signal, onError = context.onError }: SubscribeOptions, kind: SubscriptionKind) {
    const opened = new AbortController()
    const open = new Promise<void>((resolve) => {
      opened.signal.addEventListener('abort', () => resolve(), { once: true })
    })
    context.running.add(this)
    // The subscription outlives the caller's trace.
    this.closed = context
      .runInTrace(NO_TRACE, () => this.#run(context, signal, kind, onError, () => opened.abort()))
      .finally(() => context.running.delete(this))
    this.closed.catch(onError)
    this.ready = Promise.race([open, this.closed])
    this.ready.catch(() => {})
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.closed.catch(() => {})
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #run(
    context: ClientContext,
    callerSignal: AbortSignal | undefined,
    kind: SubscriptionKind,
    onError: ErrorListener,
    opened: () => void,
  ): Promise<void> {
    const signal = AbortSignal.any([this.#stop.signal, callSignal(context, callerSignal)])
    const request = () => ({ method: 'GET', ...kind.request() }) as const
    try {
      for await (const item of followStream(context.transport, { request, silenceMs: context.silenceMs, signal })) {
        if (item.kind === 'failure') {
          onError(item.error)
        } else if (item.kind === 'open') {
          opened()
          if (item.again) kind.reconnected?.()
        } else if (item.event.event === 'error') {
          const error = streamFailure(item.event.data)
          if (kind.failed(error)) throw error
        } else {
          await kind.received(item.event, signal)
        }
        if (signal.aborted) break
      }
    } finally {
      await kind.settled?.()
    }
  }
}

/** Errors of a stream that a new connection does not cure. */
const FINAL = new Set(['FORBIDDEN', 'UNAUTHENTICATED', 'CHANNEL_INVALID', 'CHANNEL_RESERVED', 'CHANNEL_LIMIT'])

export function isFinal({ code }: SignalboxError): boolean {
  return FINAL.has(code)
}
