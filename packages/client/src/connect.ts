import type { Agents } from './agents/agents.ts'
import { agentsOf } from './agents/agents.ts'
import type { ClientContext, ErrorListener, RunInTrace } from './client-context.ts'
import { reportError } from './client-context.ts'
import { argumentError, SignalboxError } from './errors.ts'
import { Events } from './events.ts'
import { Queue } from './queue/queue.ts'
import type { RequestOptions } from './requests.ts'
import { sendCommand, sendQuery } from './requests.ts'
import type { AnswerHandler, AnswerOptions, RequestKind } from './responder.ts'
import { answerRequests } from './responder.ts'
import { SendBatches } from './send-batches.ts'
import { Store } from './store.ts'
import type { Subscription } from './subscription.ts'
import type { Duration } from './time.ts'
import { milliseconds } from './time.ts'
import type { Fetch, TokenSource } from './transport.ts'
import { Transport } from './transport.ts'
import type { Schema } from './typed-channel.ts'
import { decoderOf, TypedChannel } from './typed-channel.ts'

export interface ConnectOptions {
  /** The bearer token, or a function that returns the current one and is called before each request. */
  readonly token?: TokenSource | undefined
  /** The `source` of the messages that this client sends, a URI reference. @default '/signalbox/client' */
  readonly source?: string | undefined
  /** The `type` of the messages that this client sends. @default 'signalbox.data' */
  readonly type?: string | undefined
  /**
   * The time for which a send to a queue or a store is repeated until it is stored, at most 90 s: the server recognizes
   * a repeat for two minutes. @default '30s'
   */
  readonly retryFor?: Duration | undefined
  /**
   * `true` sends messages to a queue or a store in one request if they are sent within a millisecond. Each has its own
   * result. `false` sends each alone. @default true
   */
  readonly batch?: boolean | undefined
  /** The number of repeats of other calls, 0 or more. Workers and subscriptions are not limited. @default 4 */
  readonly retries?: number | undefined
  /** The longest time of one attempt, in addition to the time that the call itself waits. @default '30s' */
  readonly timeout?: Duration | undefined
  /** The longest time without a byte on a stream, before it is opened again. The server sends a comment every 30 s. @default '75s' */
  readonly silence?: Duration | undefined
  /** Closes the client. */
  readonly signal?: AbortSignal | undefined
  /** Receives errors that no call throws: of handlers and of connections. @default a line on the console */
  readonly onError?: ErrorListener | undefined
  /** Returns headers for the trace of a request, such as `traceparent`. Called for each request. @default none */
  readonly traceHeaders?: (() => Readonly<Record<string, string>>) | undefined
  /** Runs each handler of a worker, responder or agent, and the calls that settle its message. @default calls `run` */
  readonly runInTrace?: RunInTrace | undefined
  /** @default the global `fetch` */
  readonly fetch?: Fetch | undefined
}

/** The options of a channel. */
export interface ChannelOptions<Input, Output> {
  /** The schema of the data: it is validated when it is sent and received, and gives the types. */
  readonly schema?: Schema<Input, Output> | undefined
}

/** A connection to a Signalbox server. Opens no socket before the first call. */
export interface Signalbox extends AsyncDisposable {
  queue<T = unknown>(channel: string): Queue<T>
  queue<Input, Output>(channel: string, options: ChannelOptions<Input, Output>): Queue<Output, Input>
  /** `channel` may be a pattern for subscriptions. */
  events<T = unknown>(channel: string): Events<T>
  events<Input, Output>(channel: string, options: ChannelOptions<Input, Output>): Events<Output, Input>
  store<T = unknown>(channel: string): Store<T>
  store<Input, Output>(channel: string, options: ChannelOptions<Input, Output>): Store<Output, Input>
  /** Asks a responder for data. @throws SignalboxError REQUEST_REJECTED, NO_SUBSCRIBER, REQUEST_TIMEOUT */
  query<T = unknown>(
    channel: string,
    data: unknown,
    options?: RequestOptions & { readonly schema?: undefined },
  ): Promise<T>
  query<T>(
    channel: string,
    data: unknown,
    options: RequestOptions & { readonly schema: Schema<unknown, T> },
  ): Promise<T>
  /** Asks a responder to act. @throws SignalboxError REQUEST_REJECTED, NO_SUBSCRIBER, REQUEST_TIMEOUT */
  command(channel: string, data: unknown, options?: RequestOptions): Promise<void>
  /** Answers commands or queries until the subscription is closed. */
  answer<T = unknown>(
    kind: RequestKind,
    channel: string,
    handler: AnswerHandler<T>,
    options?: AnswerOptions & { readonly schema?: Schema<unknown, T> | undefined },
  ): Subscription
  readonly agents: Agents
  /** Drains the workers, ends the subscriptions, and removes the agents of this client. Idempotent. */
  close(): Promise<void>
}

/** The longest `retryFor`, in ms. The rest of two minutes is for the last attempt, whose time-out is 30 s by default. */
const MAX_RETRY_FOR_MS = 90_000

/**
 * Returns a client of the server at the URL.
 * @throws SignalboxError ARGUMENT_INVALID
 */
export function connect(url: string, options: ConnectOptions = {}): Signalbox {
  const {
    retries = 4,
    retryFor = '30s',
    timeout = '30s',
    silence = '75s',
    signal,
    fetch: ownFetch,
    batch = true,
  } = options
  if (!Number.isInteger(retries) || retries < 0) {
    throw argumentError('retries', retries, 'a whole number of at least 0')
  }
  checkRuntime()
  const retryForMs = milliseconds('retryFor', retryFor)
  if (retryForMs > MAX_RETRY_FOR_MS) throw argumentError('retryFor', retryFor, '0 to 90 seconds')
  const closing = new AbortController()
  const transport = new Transport({
    url,
    token: options.token,
    traceHeaders: options.traceHeaders,
    retries,
    timeoutMs: milliseconds('timeout', timeout),
    // Browsers refuse `fetch` as a method of another object.
    fetch: ownFetch ?? ((address, init) => globalThis.fetch(address, init)),
  })
  const context: ClientContext = {
    transport,
    source: options.source ?? '/signalbox/client',
    type: options.type ?? 'signalbox.data',
    silenceMs: milliseconds('silence', silence),
    sends: new SendBatches({ transport, batch, retryForMs, signal: closing.signal }),
    onError: options.onError ?? reportError,
    runInTrace: options.runInTrace ?? ((_headers, run) => run()),
    signal: closing.signal,
    running: new Set(),
  }
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => (closed ??= closeAll(context, closing))
  if (signal?.aborted === true) void close()
  else signal?.addEventListener('abort', () => void close(), { once: true })

  return {
    queue: <Output, Input>(channel: string, { schema }: ChannelOptions<Input, Output> = {}) =>
      new Queue(new TypedChannel<Output, Input>(context, channel, schema)),
    events: <Output, Input>(channel: string, { schema }: ChannelOptions<Input, Output> = {}) =>
      new Events(new TypedChannel<Output, Input>(context, channel, schema)),
    store: <Output, Input>(channel: string, { schema }: ChannelOptions<Input, Output> = {}) =>
      new Store(new TypedChannel<Output, Input>(context, channel, schema)),
    query: async <T>(
      channel: string,
      data: unknown,
      given: RequestOptions & { readonly schema?: Schema<unknown, T> | undefined } = {},
    ) => decoderOf(given.schema)(await sendQuery(context, channel, data, given)),
    command: (channel, data, given = {}) => sendCommand(context, channel, data, given),
    answer: (kind, channel, handler, given = {}) =>
      answerRequests(context, kind, channel, decoderOf(given.schema), handler, given),
    agents: agentsOf(context),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** An older runtime would fail at the first call, with an error that does not name the reason. */
function checkRuntime(): void {
  if (typeof globalThis.crypto !== 'undefined' && typeof AbortSignal.any === 'function') return
  throw new SignalboxError('RUNTIME_UNSUPPORTED', '@signalbox/client needs Node 20.3, or a browser of 2024, or newer')
}

async function closeAll(context: ClientContext, closing: AbortController): Promise<void> {
  const ended = [...context.running].map((part) => part.close())
  closing.abort(new SignalboxError('CLOSED', 'the client is closed'))
  await Promise.all(ended)
}
