import { createHash } from 'node:crypto'

import type { BrokerHandle } from '@signalbox/broker-core'
import { isWebhookFailure } from '@signalbox/broker-core/ports'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { canonicalJson, isoTime } from '@signalbox/http-kit/internal'

import type { EventsDialect } from '../wire/events-profile.ts'
import type { EventPosition } from './event-log.ts'
import { cursorOf, EventLog } from './event-log.ts'
import type { readSubscribeParams, readUnsubscribeParams, SelectedEvents } from './event-selection.ts'
import { startOf } from './event-selection.ts'
import type { EventWebhooks } from './event-webhooks.ts'
import { notesOf } from './event-webhooks.ts'

/** The time of a subscription whose client names none, in ms. */
const USUAL_TTL_MS = 86_400_000

/** The shortest and the longest time of a subscription, in ms. */
const MIN_TTL_MS = 60_000
const MAX_TTL_MS = 2_592_000_000

/** The result of `events/subscribe`. */
export interface SubscribeResult {
  readonly id: string
  /** ISO 8601; `null` if the subscription has no end. */
  readonly refreshBefore: string | null
  readonly cursor: string | null
  readonly truncated: boolean
}

type SubscribeParams = ReturnType<typeof readSubscribeParams>
type UnsubscribeParams = ReturnType<typeof readUnsubscribeParams>

/** The parts that subscriptions need. */
export interface SubscriptionParts {
  readonly broker: BrokerHandle
  readonly system: BrokerHandle
  readonly webhooks: EventWebhooks
  readonly dialect: EventsDialect
}

/**
 * Subscribes an endpoint, or renews its subscription.
 * @param endless `true` if the client wants a subscription without an end
 */
export async function subscribeEndpoint(
  { type, channel }: SelectedEvents,
  params: SubscribeParams,
  endless: boolean,
  { broker, system, webhooks }: SubscriptionParts,
): Promise<SubscribeResult> {
  const { clientId, account = clientId } = broker.caller
  const { delivery, ttlMs = USUAL_TTL_MS } = params
  // An events channel counts for the caller who creates it.
  const channelType = type.channelType === 'events_store' ? 'events_store' : 'events'
  await createChannel(broker, channelType, channel)
  const log = new EventLog(system, channel)
  const start = channelType === 'events_store' ? await startOf(log, channel, params) : undefined
  const id = subscriptionId(clientId, params)
  const expiresMs = endless ? undefined : Date.now() + Math.min(Math.max(ttlMs, MIN_TTL_MS), MAX_TTL_MS)
  const subscription = await put(webhooks, id, {
    owner: clientId,
    account,
    type: channelType,
    channel,
    endpoint: delivery.url,
    secret: delivery.secret,
    notes: notesOf(type),
    start: start?.position.next,
    expiresMs,
  })
  const refreshBefore = subscription.expiresMs === undefined ? null : isoTime(subscription.expiresMs)
  if (start === undefined) return { id, refreshBefore, cursor: null, truncated: false }
  const position = await positionOf(subscription.next, start.position, log)
  const renewed = position.next !== start.position.next
  const truncated = renewed ? await log.hasLost(position.next) : start.truncated
  return { id, refreshBefore, cursor: cursorOf(channel, position), truncated }
}

async function positionOf(next: number | undefined, start: EventPosition, log: EventLog): Promise<EventPosition> {
  return next === undefined || next === start.next ? start : log.at(next)
}

/** Ends the subscription of an endpoint. */
export async function unsubscribeEndpoint(
  params: UnsubscribeParams,
  { broker, webhooks, dialect }: SubscriptionParts,
): Promise<void> {
  const { clientId } = broker.caller
  try {
    await webhooks.delete(subscriptionId(clientId, params), clientId)
  } catch (error) {
    const unknown = isWebhookFailure(error) && error.code === 'SUBSCRIPTION_UNKNOWN'
    if (!unknown || dialect.refusesUnknown) throw error
  }
}

/** Returns the id of a subscription: the same for each request with the same caller, endpoint, type and arguments. */
function subscriptionId(clientId: string, { name, arguments: args = {}, delivery }: UnsubscribeParams): string {
  const key = canonicalJson([clientId, delivery.url, name, args])
  return createHash('sha256').update(key).digest('base64url').slice(0, 32)
}

async function createChannel(broker: BrokerHandle, type: 'events_store' | 'events', channel: string): Promise<void> {
  const subscription =
    type === 'events'
      ? await broker.events.subscribe(channel, {}, () => {})
      : await broker.eventsStore.subscribe(channel, { from: 'new' }, {}, () => {})
  await subscription.close()
}

async function put(
  webhooks: EventWebhooks,
  ...[id, input]: Parameters<EventWebhooks['put']>
): ReturnType<EventWebhooks['put']> {
  try {
    return await webhooks.put(id, input)
  } catch (error) {
    // An http URL is a wrong argument, unless the operator allows its host.
    if (isWebhookFailure(error) && error.code === 'ENDPOINT_REFUSED' && !isHttps(input.endpoint)) {
      throw new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid params: delivery.url: ${error.message}`)
    }
    throw error
  }
}

function isHttps(url: string): boolean {
  return URL.canParse(url) && new URL(url).protocol === 'https:'
}
