import type { EventsStoreStart, Message, Subscription } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'
import { parseTimestamp, timestampRefusal } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { CeError, invalidParameters, toCeError } from '../errors.ts'
import { Feed } from '../sse/feed.ts'
import { errorFrame, messageFrame, SLOW_CONSUMER } from '../sse/frames.ts'
import { handOver } from '../sse/hand-over.ts'
import type { SubscriptionInfo } from '../sse/subscriptions.ts'
import { channel, defineCeRoute, STRICT } from './route.ts'
import type { CeRouteCall } from './route.ts'

function common(channelText: string) {
  return {
    channel: channel(channelText),
    group: Type.Optional(
      Type.String({
        description: 'A consumer group: each message goes to one of its subscribers.',
        minLength: 1,
        maxLength: 256,
      }),
    ),
    client_id: Type.Optional(
      Type.String({ description: 'Names the subscription for operators.', minLength: 1, maxLength: 256 }),
    ),
  }
}

interface CommonQuery {
  readonly channel: string
  readonly group?: string
  readonly client_id?: string
}

export const subscribeEvents = defineCeRoute({
  name: 'subscribe/events',
  output: undefined,
  method: 'GET',
  summary: 'Streams events as they are published. A slow subscriber misses events, and gets their number.',
  body: 'ignored',
  input: Type.Object(
    common('A channel, or several: `*` stands for one part of a name, a last `>` for one or more.'),
    STRICT,
  ),
  run: (query, call) =>
    subscribe('events', query, call, (feed, options) => {
      const listener = (event: Message): void => {
        if (feed.open) feed.offer(messageFrame('events', event))
      }
      return call.broker.events.subscribe(query.channel, options, listener)
    }),
})

export const subscribeEventsStore = defineCeRoute({
  name: 'subscribe/events-store',
  output: undefined,
  method: 'GET',
  summary: 'Streams an events store from any position, without gap or repeat. `Last-Event-ID` continues a stream.',
  body: 'ignored',
  input: Type.Object(
    {
      ...common('The events store.'),
      durable: Type.Optional(
        Type.Boolean({
          description:
            'Keeps the position of the group, which is required, for seven days after its last subscriber left.',
          default: false,
        }),
      ),
      events_store_type: Type.Optional(
        Type.Integer({
          description:
            'First event: 1 the next new one, 2 the first stored, 3 the last stored, 4 a sequence, 5 a time, 6 seconds ago.',
          minimum: 1,
          maximum: 6,
          default: 1,
        }),
      ),
      events_store_value: Type.Optional(
        Type.String({ description: 'The sequence (4), the ISO 8601 timestamp (5) or the seconds (6).' }),
      ),
    },
    STRICT,
  ),
  run(query, call) {
    const lastEventId = call.exchange.request.headers['last-event-id']
    const start = storeStart(query.events_store_type, query.events_store_value, headerText(lastEventId))
    const { durable = false } = query
    const grouped = query.group !== undefined
    if (durable && !grouped) {
      throw invalidParameters([{ parameter: 'durable', given: 'true', allowed: 'false, or true with group' }])
    }
    return subscribe('events_store', query, call, (feed, options) =>
      call.broker.eventsStore.subscribe(query.channel, start, { ...options, durable }, (event) => {
        const frame = messageFrame('events_store', event, event.sequence)
        // A message that a subscriber of a group has not received goes to another subscriber of the group, so the
        // engine waits for each delivery.
        return grouped ? feed.deliver(frame) : feed.push(frame)
      }),
    )
  },
})

function requestRoute(name: 'commands' | 'queries', what: string) {
  return defineCeRoute({
    name: `subscribe/${name}`,
    output: undefined,
    method: 'GET',
    summary: `Streams ${name}; each waits for its answer by \`send/response\`.`,
    body: 'ignored',
    input: Type.Object(common(`The channel of ${name}.`), STRICT),
    run: (query, call) =>
      subscribe(name, query, call, async (feed, options) => {
        // First, because an answer may arrive as soon as the subscription exists.
        await call.environment.relay?.open()
        const { environment, identity } = call
        const { pending, relay } = environment
        const subscriber = {
          feed,
          pending,
          node: relay?.node,
          clientId: identity.clientId,
          graceMs: environment.options.answerGraceMs,
        }
        return call.broker[name].subscribe(query.channel, options, (request) =>
          handOver(name, what, request, subscriber),
        )
      }),
  })
}

export const subscribeCommands = requestRoute('commands', 'command')
export const subscribeQueries = requestRoute('queries', 'query')

/**
 * Subscribes, and then answers with a stream: a client that has read the head of the answer receives every later
 * message. The subscription ends with the stream, and the stream with the subscription.
 */
async function subscribe(
  type: SubscriptionInfo['type'],
  query: CommonQuery,
  { account, broker, exchange, identity, signal, environment }: CeRouteCall,
  begin: (feed: Feed, options: { group: string | undefined; signal: AbortSignal }) => Promise<Subscription>,
): Promise<undefined> {
  const { options, flusher, subscriptions } = environment
  const refusal = exchange.hold?.toStream()
  if (refusal !== undefined) {
    exchange.refuse(refusal)
    return undefined
  }
  await subscriptions.opening(account, async () => {
    const feed = new Feed({
      flusher,
      maxBytes: options.maxBufferedBytes,
      onDropped: (count) => environment.dropped(count),
      failed: (error) => environment.failed(error),
    })
    let subscription: Subscription
    try {
      subscription = await begin(feed, { signal, group: query.group })
    } catch (error) {
      feed.end()
      throw error
    }
    const close = (): void => {
      subscription.close().catch((error: unknown) => environment.failed(error))
    }
    if (exchange.abandoned || signal.aborted) {
      feed.end()
      close()
      signal.throwIfAborted()
      return
    }
    const stream = exchange.openStream({
      keepAliveMs: options.keepAliveMs,
      idleMs: options.maxSseIdleSeconds * 1000,
      maxBufferedBytes: options.maxBufferedBytes,
      slowConsumerMs: options.slowConsumerMs,
      slowConsumerEvent: SLOW_CONSUMER,
      endsAt: identity.expiresAt,
    })
    stream.onEnd(() => {
      feed.end()
      close()
    })
    const info: SubscriptionInfo = {
      type,
      channel: query.channel,
      group: query.group,
      clientId: query.client_id,
      principal: broker.caller.clientId,
      since: Date.now(),
    }
    subscriptions.add(stream, info, account)
    feed.attach(stream)
    subscription.closed
      .then((error) => {
        if (!stream.open) return
        if (error !== undefined) {
          const { code, message } = toCeError(error)
          if (code === 'INTERNAL') environment.failed(error)
          stream.writeText(errorFrame(code, message))
          feed.end(code === 'FORBIDDEN')
        }
        stream.end()
      })
      .catch((error: unknown) => feed.fail(error))
  })
  return undefined
}

function headerText(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(', ') : header
}

/** The start of a subscription to an events store, by `events_store_type`. */
const EVENTS_STORE_TYPES = { new: 1, first: 2, last: 3, sequence: 4, time: 5, delta: 6 } as const

const WHOLE = /^(?:0|[1-9]\d{0,15})$/

/** The longest time back that still makes a valid date, in seconds. */
const MAX_SECONDS = 1_000_000_000_000

/**
 * Returns the start of a subscription from the query. A reconnecting client sends Last-Event-ID, which overrides the
 * query: the subscription continues after that event.
 * @throws CeError PARAMETER_INVALID
 */
export function storeStart(
  type: number = EVENTS_STORE_TYPES.new,
  value: string | undefined,
  lastEventId: string | undefined,
): EventsStoreStart {
  const start = startOf(type, value)
  if (lastEventId === undefined) return start
  const sequence = wholeNumber(lastEventId)
  if (sequence === undefined || sequence >= Number.MAX_SAFE_INTEGER) {
    throw new CeError(
      'PARAMETER_INVALID',
      `invalid header Last-Event-ID: ${shownText(lastEventId)}; it must be the id of an event of this store, a whole number from 0 to ${Number.MAX_SAFE_INTEGER - 1}`,
    )
  }
  return { from: 'sequence', sequence: sequence + 1 }
}

function startOf(type: number, value: string | undefined): EventsStoreStart {
  const allowed = allowedValue(type, value)
  if (allowed === undefined) {
    if (value !== undefined) throw wrongValue(value, 'left out, or events_store_type 4, 5 or 6')
    if (type === EVENTS_STORE_TYPES.first) return { from: 'first' }
    return type === EVENTS_STORE_TYPES.last ? { from: 'last' } : { from: 'new' }
  }
  if (value === undefined) throw wrongValue(undefined, allowed)
  const number = type === EVENTS_STORE_TYPES.time ? parseTimestamp(value) : wholeNumber(value)
  if (number === undefined) throw wrongValue(value, allowed)
  if (type === EVENTS_STORE_TYPES.time) return { from: 'time', timestamp: number }
  if (type === EVENTS_STORE_TYPES.sequence) {
    if (number < 1) throw wrongValue(value, allowed)
    return { from: 'sequence', sequence: number }
  }
  if (number > MAX_SECONDS) throw wrongValue(value, allowed)
  return { from: 'delta', milliseconds: number * 1000 }
}

function allowedValue(type: number, value = ''): string | undefined {
  switch (type) {
    case EVENTS_STORE_TYPES.sequence:
      return `a sequence with events_store_type 4: a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`
    case EVENTS_STORE_TYPES.time:
      return `with events_store_type 5 ${timestampRefusal(value)}`
    case EVENTS_STORE_TYPES.delta:
      return `seconds back with events_store_type 6: a whole number from 0 to ${MAX_SECONDS}`
    default:
      return undefined
  }
}

function wholeNumber(text: string): number | undefined {
  const number = WHOLE.test(text) ? Number(text) : undefined
  return number !== undefined && Number.isSafeInteger(number) ? number : undefined
}

function wrongValue(given: string | undefined, allowed: string): CeError {
  const parameter = 'events_store_value'
  return invalidParameters([
    given === undefined ? { parameter, allowed } : { parameter, given: shownText(given), allowed },
  ])
}
