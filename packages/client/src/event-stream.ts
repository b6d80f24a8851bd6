import type { EventSourceMessage } from 'eventsource-parser'
import { createParser } from 'eventsource-parser'

import { isObject, parsed, asString } from './cloud-event.ts'
import { SignalboxError } from './errors.ts'
import { ceFailure, problemsOf } from './http-calls.ts'
import { backoff, pause } from './time.ts'
import type { Call, FailureReader, Transport } from './transport.ts'
import { isRetryable, statusFailure } from './transport.ts'

/** A part of a stream that the client keeps open. */
export type StreamItem =
  | {
      readonly kind: 'open'
      /** `true` if the stream was open before: messages that are not stored may have been missed. */
      readonly again: boolean
    }
  | { readonly kind: 'event'; readonly event: EventSourceMessage }
  /** An error that does not end the subscription. */
  | { readonly kind: 'failure'; readonly error: SignalboxError }

/** A stream that ends sooner did not last: the next connection waits. In ms. */
const SHORT_MS = 1000

export interface FollowOptions {
  /** Returns the request of the next connection. */
  readonly request: () => Omit<Call, 'signal' | 'repeatable'>
  /** The longest time without a byte before the connection is made again, in ms. The server sends a comment every 30 s. */
  readonly silenceMs: number
  readonly signal: AbortSignal
}

/**
 * Keeps a stream open: connects again when it ends or breaks, and when the server is silent for too long. Returns
 * when the signal aborts.
 * @throws SignalboxError that no other attempt can cure, such as FORBIDDEN
 */
export async function* followStream(
  transport: Transport,
  { request, silenceMs, signal }: FollowOptions,
): AsyncGenerator<StreamItem, void, void> {
  let again = false
  for (let failures = 0; !signal.aborted;) {
    const begun = Date.now()
    try {
      for await (const event of readStream(transport, { ...request(), repeatable: true, signal }, silenceMs)) {
        if (event === 'open') {
          yield { kind: 'open', again }
          again = true
        } else {
          failures = 0
          yield { kind: 'event', event }
        }
      }
      // The server ends idle streams after minutes. A proxy that ends each stream at once must not cause a busy loop.
      if (Date.now() - begun > SHORT_MS) failures = 0
      else await pause(backoff(failures++), signal)
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof SignalboxError) || !isRetryable(error, true)) throw error
      yield { kind: 'failure', error }
      await pause(backoff(failures++, error.retryAfterMs), signal)
    }
  }
}

/** Reads one connection: first `open`, then its events. Ends with the connection. @throws SignalboxError */
export async function* readStream(
  transport: Transport,
  call: Call,
  silenceMs: number,
  failureOf: FailureReader = ceFailure,
): AsyncGenerator<EventSourceMessage | 'open', void, void> {
  const connection = new AbortController()
  const signal = call.signal ? AbortSignal.any([connection.signal, call.signal]) : connection.signal
  try {
    const headers = { Accept: 'text/event-stream', ...call.headers }
    const response = await transport.open({ ...call, headers, signal })
    const isStream = /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')
    if (response.status !== 200 || !isStream || response.body === null) {
      const { status, headers: answered } = response
      const answer = { status, headers: answered, text: await response.text() }
      throw failureOf(answer) ?? statusFailure(answer)
    }
    yield 'open'
    const events: EventSourceMessage[] = []
    const parser = createParser({ onEvent: (event) => events.push(event) })
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    for (;;) {
      const { done, value } = await readWithin(reader, silenceMs, connection, call.signal)
      if (done) return
      parser.feed(value)
      yield* events.splice(0)
    }
  } finally {
    connection.abort()
  }
}

async function readWithin(
  reader: ReadableStreamDefaultReader<string>,
  silenceMs: number,
  connection: AbortController,
  signal: AbortSignal | undefined,
): Promise<ReadableStreamReadResult<string>> {
  let silent = false
  const timer = setTimeout(() => {
    silent = true
    connection.abort()
  }, silenceMs)
  try {
    return await reader.read()
  } catch (error) {
    signal?.throwIfAborted()
    const message = silent ? `the server sent nothing for ${silenceMs / 1000} s` : 'the connection broke'
    throw new SignalboxError('UNREACHABLE', message, { cause: error, retryable: true })
  } finally {
    clearTimeout(timer)
  }
}

/** Returns the error that an `error` event of a stream carries. */
export function streamFailure(data: string): SignalboxError {
  const body = parsed(data)
  const details = isObject(body) && isObject(body['data']) ? body['data'] : {}
  const message = isObject(body) ? asString(body['message']) : undefined
  const code = asString(details['code']) ?? 'RESPONSE_INVALID'
  return new SignalboxError(code, message ?? data, { details, problems: problemsOf(details['problems']) })
}
