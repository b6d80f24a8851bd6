import type { BrokerHandle } from '@signalbox/broker-core'
import { BrokerError, decodeText, isReservedChannel } from '@signalbox/broker-core'
import { assertChannelName, CesqlParseError, compileCesql } from '@signalbox/broker-core/internal'
import { compileArguments, isoTime, parseJson, problemsText } from '@signalbox/http-kit/internal'

import { CeError } from '../errors.ts'
import { CE_PUSH_FORMATS } from './push-formats.ts'
import type { PushSubscription, PushSubscriptions, PushTarget, PushType } from './push-subscriptions.ts'
import type { SecretShape, SubscriptionBody, SubscriptionShape } from './subscription-shape.ts'
import { SubscriptionBodySchema } from './subscription-shape.ts'

const check = compileArguments({
  whose: 'subscription',
  input: SubscriptionBodySchema,
  refused: (problems) =>
    new CeError('SUBSCRIPTION_INVALID', `invalid subscription: ${problemsText(problems)}`, {
      member: problems[0]?.argument ?? '',
      problems,
    }),
})

interface PushCall {
  readonly broker: BrokerHandle
  readonly method: string
  readonly target: PushTarget
  /** The body of a new subscription. */
  readonly body: Uint8Array | undefined
}

interface PushAnswer {
  readonly status: number
  /** JSON text. */
  readonly text: string
}

/** Runs a call on the caller's subscriptions. */
export async function pushCall(push: PushSubscriptions, call: PushCall): Promise<PushAnswer> {
  const { broker, method, target, body } = call
  const owner = broker.caller.clientId
  const { id } = target
  if (id === undefined) {
    if (method === 'POST') return create(push, broker, body)
    return { status: 200, text: JSON.stringify(push.list(owner).map((each) => shapeOf(each))) }
  }
  if (target.isSecret) {
    const answer: SecretShape = { id, secret: await push.rotateSecret(id, owner) }
    return { status: 200, text: JSON.stringify(answer) }
  }
  const subscription = method === 'DELETE' ? await push.delete(id, owner) : await push.get(id, owner)
  return { status: 200, text: JSON.stringify(shapeOf(subscription)) }
}

async function create(
  push: PushSubscriptions,
  broker: BrokerHandle,
  body: Uint8Array | undefined,
): Promise<PushAnswer> {
  const { sink, config, filter } = readNewSubscription(body)
  const { channel, type = 'events_store', mode = 'structured', ordered, start, secret } = config
  await assertMaySubscribe(broker, type, channel)
  const { clientId, account = clientId } = broker.caller
  const created = await push.create({
    owner: clientId,
    account,
    type,
    channel,
    endpoint: sink,
    format: CE_PUSH_FORMATS[mode].name,
    filter,
    ordered,
    start,
    secret,
  })
  return { status: 201, text: JSON.stringify(shapeOf(created.subscription, created.secret)) }
}

/** A valid body, with one expression for all filters. */
interface ReadSubscription extends Pick<SubscriptionBody, 'sink' | 'config'> {
  readonly filter: string | undefined
}

/** Reads the body of a new subscription. @throws CeError SUBSCRIPTION_INVALID */
export function readNewSubscription(body: Uint8Array | undefined): ReadSubscription {
  const { sink, config, filters = [] } = check(bodyOf(body))
  return { sink, config, filter: filterOf(filters) }
}

function bodyOf(body: Uint8Array | undefined): unknown {
  const text = body && decodeText(body)
  const parsed = text === undefined ? { problem: 'not UTF-8' } : parseJson(text)
  if ('value' in parsed) return parsed.value
  throw new CeError('SUBSCRIPTION_INVALID', `invalid subscription: the body is ${parsed.problem}`)
}

/** Returns one expression for all filters. Each is compiled alone, so that none can close the parentheses. */
function filterOf(filters: NonNullable<SubscriptionBody['filters']>): string | undefined {
  for (const [i, { sql }] of filters.entries()) {
    try {
      compileCesql(sql)
    } catch (error) {
      if (!(error instanceof CesqlParseError)) throw error
      const member = `filters.${i}.sql`
      throw new CeError('SUBSCRIPTION_INVALID', `invalid subscription: ${member} is no valid CESQL: ${error.message}`, {
        member,
      })
    }
  }
  const [first] = filters
  if (filters.length < 2) return first?.sql
  return filters.map(({ sql }) => `(${sql})`).join(' AND ')
}

/**
 * Checks that the caller may have the messages of a channel: `subscribe`, and for a queue `receive`, because deliveries
 * remove its messages. A subscription to events creates the channel, which counts for the caller.
 * @throws BrokerError CHANNEL_*, FORBIDDEN, CALLER_LIMIT
 */
async function assertMaySubscribe(broker: BrokerHandle, type: PushType, channel: string): Promise<void> {
  if (isReservedChannel(channel)) {
    throw new BrokerError('CHANNEL_RESERVED', 'reserved channel name', { channel: channel.slice(0, 64) })
  }
  assertChannelName(channel)
  if (type === 'queues') {
    broker.authorize('receive', type, channel)
    return
  }
  const subscription =
    type === 'events'
      ? await broker.events.subscribe(channel, {}, () => {})
      : await broker.eventsStore.subscribe(channel, { from: 'new' }, {}, () => {})
  await subscription.close()
}

function shapeOf(subscription: PushSubscription, secret?: string): SubscriptionShape {
  const { id, type, channel, endpoint, format, filter, ordered, state, reason, next, createdMs } = subscription
  const mode = Object.entries(CE_PUSH_FORMATS).find(([, { name }]) => name === format)?.[0] ?? format
  return {
    id,
    sink: endpoint,
    protocol: 'HTTP',
    config: { channel, type, mode, ordered, ...(secret === undefined ? {} : { secret }) },
    filters: filter === undefined ? [] : [{ sql: filter }],
    status: {
      state,
      ...(reason === undefined ? {} : { reason }),
      ...(next === undefined ? {} : { next_sequence: next }),
      dead_letter_queue: subscription.deadLetterQueue,
    },
    created_at: isoTime(createdMs),
  }
}
