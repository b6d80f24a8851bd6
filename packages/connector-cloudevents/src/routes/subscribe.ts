import type { Message, Subscription } from '@signalbox/broker-core'
import { Type } from 'typebox'

import { invalidParameters, toCeError } from '../errors.ts'
import { Feed } from '../sse/feed.ts'
import { errorFrame, messageFrame, SLOW_CONSUMER } from '../sse/frames.ts'
import { handOver } from '../sse/hand-over.ts'
import { storeStart } from '../sse/store-start.ts'
import type { SubscriptionInfo } from '../sse/subscriptions.ts'
import { channel, STRICT } from './parameter-types.ts'
import type { CeRouteCall } from './route.ts'
import { defineCeRoute } from './route.ts'

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
  answer: undefined,
  method: 'GET',
  summary: 'Streams events as they are published. A slow subscriber misses events, and gets their number.',
  body: 'ignored',
  query: Type.Object(
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
  answer: undefined,
  method: 'GET',
  summary: 'Streams an events store from any position, without gap or repeat. `Last-Event-ID` continues a stream.',
  body: 'ignored',
  query: Type.Object(
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
    answer: undefined,
    method: 'GET',
    summary: `Streams ${name}; each waits for its answer by \`send/response\`.`,
    body: 'ignored',
    query: Type.Object(common(`The channel of ${name}.`), STRICT),
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
  begin: (feed: Feed, options: { group?: string; signal: AbortSignal }) => Promise<Subscription>,
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
      subscription = await begin(feed, { signal, ...(query.group === undefined ? {} : { group: query.group }) })
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
      ...(identity.expiresAt === undefined ? {} : { endsAt: identity.expiresAt }),
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
