import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import type { ConnectionCaller, JsonRpcRequest, SseStream } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { messageSizeInJson } from '@signalbox/http-kit/internal'

import type { McpExchange } from '../mcp-exchange.ts'
import { subscriptionMeta } from '../wire/2026-07-28.ts'
import type { Occurrence } from '../wire/events-profile.ts'
import { EventsDialect } from '../wire/events-profile.ts'
import type { CacheScope } from '../wire/revision.ts'
import { missingAction } from '../tools/broker-failures.ts'
import { eventsError } from './event-errors.ts'
import { cursorOf, EventLog, positionAfter } from './event-log.ts'
import type { SelectedEvents } from './event-selection.ts'
import {
  isEndless,
  readListParams,
  readPollParams,
  readStreamParams,
  readSubscribeParams,
  readUnsubscribeParams,
  selectEvents,
  startOf,
} from './event-selection.ts'
import { EventStream } from './event-stream.ts'
import type { SubscriptionParts } from './event-subscriptions.ts'
import { subscribeEndpoint, unsubscribeEndpoint } from './event-subscriptions.ts'
import type { EventType } from './event-types.ts'
import { modesFor, occurrenceOf } from './event-types.ts'
import type { ResolvedEventsOptions } from './options.ts'

/** The parts of the endpoint that the methods of events use. */
export interface EventMethodsEnvironment {
  readonly broker: Broker
  /** `true` if callers are not authenticated. A webhook needs an owner, so they have none. */
  readonly anonymous: boolean
  /** Opens a stream as the answer, or refuses it: then it returns `undefined`. */
  openStream(exchange: McpExchange, caller: ConnectionCaller): SseStream | undefined
  failed(error: unknown): void
}

/** One request about events. */
interface EventCall {
  readonly exchange: McpExchange
  readonly caller: ConnectionCaller
  readonly message: JsonRpcRequest
  readonly broker: BrokerHandle
  readonly dialect: EventsDialect
}

/** Answers the requests about events, and sends them on streams. */
export class EventMethods {
  readonly #options: ResolvedEventsOptions
  readonly #types: ReadonlyMap<string, EventType>
  readonly #environment: EventMethodsEnvironment
  /** The functions that complete the open streams. */
  readonly #streams = new Set<() => void>()

  constructor(
    options: ResolvedEventsOptions,
    types: ReadonlyMap<string, EventType>,
    environment: EventMethodsEnvironment,
  ) {
    this.#options = options
    this.#types = types
    this.#environment = environment
  }

  /** Answers a request whose method begins with `events/`. */
  handle(exchange: McpExchange, caller: ConnectionCaller, message: JsonRpcRequest): void {
    const call: EventCall = {
      exchange,
      caller,
      message,
      broker: caller.handle(this.#environment.broker),
      dialect: new EventsDialect(this.#options.codes, exchange.capabilities.events),
    }
    const answered = message.method === 'events/stream' ? this.#stream(call) : this.#answer(call)
    answered
      .catch((error: unknown) => this.#fail(call, error))
      .catch((error: unknown) => {
        this.#environment.failed(error)
        exchange.response.destroy()
      })
  }

  async #answer(call: EventCall): Promise<void> {
    const { exchange, message } = call
    const members = JSON.stringify(await this.#result(call)).slice(1, -1)
    const hints = message.method === 'events/list' ? exchange.revision.cacheHints(this.#scope) : ''
    exchange.succeed(message.id, members + hints)
  }

  /** The list depends on the caller's permissions; anonymous callers all have the same. */
  get #scope(): CacheScope {
    return this.#environment.anonymous ? 'public' : 'private'
  }

  async #result({ message, broker, dialect }: EventCall): Promise<object> {
    const { system } = this.#options
    switch (message.method) {
      case 'events/list':
        return this.#list(message, broker)
      case 'events/poll': {
        const params = readPollParams(message)
        return pollEvents(selectEvents(this.#types, params, 'poll', { broker, dialect }), params, { broker, system })
      }
      case 'events/subscribe': {
        const params = readSubscribeParams(message)
        const events = selectEvents(this.#types, params, 'webhook', { broker, dialect })
        const parts = this.#subscriptionParts(broker, dialect)
        return subscribeEndpoint(events, params, isEndless(message), parts)
      }
      default:
        await unsubscribeEndpoint(readUnsubscribeParams(message), this.#subscriptionParts(broker, dialect))
        return {}
    }
  }

  #list(message: JsonRpcRequest, broker: BrokerHandle): object {
    if (readListParams(message).cursor !== undefined) {
      const text = 'invalid params: events/list: unknown cursor; all event types are on the first page'
      throw new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, text)
    }
    const events = [...this.#types.values()].flatMap((type) => {
      const { name, description, inputSchema, payloadSchema } = type
      const delivery = modesFor(broker, type, this.#hasWebhooks)
      return delivery.length === 0 ? [] : [{ name, description, delivery, inputSchema, payloadSchema }]
    })
    return { events }
  }

  get #hasWebhooks(): boolean {
    return this.#options.webhooks !== undefined && !this.#environment.anonymous
  }

  #subscriptionParts(broker: BrokerHandle, dialect: EventsDialect): SubscriptionParts {
    const { system, webhooks } = this.#options
    if (webhooks === undefined) {
      throw dialect.error('UNSUPPORTED', 'this server delivers no events to webhooks; use events/poll or events/stream')
    }
    if (this.#environment.anonymous) {
      throw dialect.error('FORBIDDEN', 'a webhook needs an owner, and this server does not authenticate callers')
    }
    return { broker, system, webhooks, dialect }
  }

  async #stream(call: EventCall): Promise<void> {
    const { exchange, caller, message, broker, dialect } = call
    const { id } = message
    const { system, heartbeatMs } = this.#options
    const params = readStreamParams(message)
    if (!exchange.accepted.events) {
      const text = 'invalid request: the answer is an event stream; add text/event-stream to the Accept header'
      throw new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, text, { status: 406 })
    }
    const events = selectEvents(this.#types, params, 'push', { broker, dialect })
    const log = new EventLog(system, events.channel)
    const start = events.type.channelType === 'events_store' ? await startOf(log, events.channel, params) : undefined
    const stream = this.#environment.openStream(exchange, caller)
    if (stream === undefined) return
    const complete = (): void => exchange.succeed(id, '', 'success', { meta: subscriptionMeta(id) })
    this.#streams.add(complete)
    stream.onEnd(() => {
      this.#streams.delete(complete)
      exchange.finish('disconnected')
    })
    const eventStream = new EventStream(id, events, {
      broker,
      system,
      heartbeatMs,
      errorOf: (error) => eventsError(error, dialect),
      failed: (error) => this.#environment.failed(error),
      over: complete,
    })
    eventStream.open(stream, start, log)
  }

  #fail({ exchange, message: { id }, dialect }: EventCall, error: unknown): void {
    const missing = missingAction(error)
    // In the OAuth mode the client asks for the scope.
    if (missing !== undefined && exchange.refuseScope(id, missing)) return
    const answer = eventsError(error, dialect)
    if (answer.cause !== undefined) this.#environment.failed(answer.cause)
    exchange.fail(answer, id)
  }

  /** Completes the open streams. */
  close(): void {
    for (const complete of this.#streams) complete()
  }
}

/** The most events of one poll, and the number without `maxEvents`. */
const MOST_EVENTS = 100
const USUAL_EVENTS = 50

/** The size of the messages of one poll in JSON after which no further one is added, in bytes. */
const POLL_BYTES = 1024 * 1024

/** The interval at which clients should poll, in ms. */
const NEXT_POLL_MS = 5_000

/** The result of a poll. */
interface PollResult {
  readonly events: readonly Occurrence[]
  readonly cursor: string
  readonly truncated: boolean
  readonly hasMore: boolean
  readonly nextPollMs: number
}

interface PollInput {
  readonly cursor?: string
  readonly maxAgeMs?: number
  readonly maxEvents?: number
}

/** Returns the events after a cursor; without a cursor none, and the cursor of the end. */
async function pollEvents(
  { type, channel }: SelectedEvents,
  input: PollInput,
  { broker, system }: { readonly broker: BrokerHandle; readonly system: BrokerHandle },
): Promise<PollResult> {
  const log = new EventLog(system, channel)
  const { position, truncated } = await startOf(log, channel, input)
  const most = Math.min(input.maxEvents ?? USUAL_EVENTS, MOST_EVENTS)
  const entries =
    input.cursor === undefined
      ? []
      : await broker.eventsStore.read(channel, {
          fromSequence: position.next,
          maxMessages: most,
          maxBytes: POLL_BYTES,
          sizeOf: messageSizeInJson,
        })
  const events: Occurrence[] = []
  for (const entry of entries) {
    // A deleted key has no message.
    if (entry.tombstone) continue
    const occurrence = occurrenceOf(type, entry, cursorOf(channel, positionAfter(entry)))
    if (occurrence !== undefined) events.push(occurrence)
  }
  const last = entries.at(-1)
  const hasMore = last !== undefined && last.sequence < (await log.lastSequence())
  return {
    events,
    cursor: cursorOf(channel, last === undefined ? position : positionAfter(last)),
    truncated,
    hasMore,
    nextPollMs: hasMore ? 0 : NEXT_POLL_MS,
  }
}
