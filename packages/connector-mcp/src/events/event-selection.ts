import type { BrokerHandle } from '@signalbox/broker-core'
import { BrokerError, isReservedChannel, RESERVED_PREFIX } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'
import type { JsonRpcRequest } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { compileArguments, isJsonObject, problemsText } from '@signalbox/http-kit/internal'
import type { Static, TObject } from 'typebox'
import { Type } from 'typebox'

import type { EventsDialect } from '../wire/events-profile.ts'
import type { EventLog, EventPosition, EventStart } from './event-log.ts'
import { readCursor } from './event-log.ts'
import type { DeliveryMode, EventType } from './event-types.ts'
import { actionFor } from './event-types.ts'

const Name = Type.String({ minLength: 1, maxLength: 128 })
const Url = Type.String({ minLength: 1, maxLength: 2_048 })
const Milliseconds = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

// Unknown members are ignored, as everywhere in the protocol.
const Selection = {
  name: Name,
  arguments: Type.Optional(Type.Object({})),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  maxAgeMs: Type.Optional(Milliseconds),
}

/** Reads the params of `events/list`. @throws JsonRpcError -32602 */
export const readListParams = reader(Type.Object({ cursor: Type.Optional(Type.String()) }))

/** Reads the params of `events/poll`. @throws JsonRpcError -32602 */
export const readPollParams = reader(
  Type.Object({
    ...Selection,
    maxEvents: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  }),
)

/** Reads the params of `events/stream`. @throws JsonRpcError -32602 */
export const readStreamParams = reader(Type.Object(Selection))

/** Reads the params of `events/subscribe`. @throws JsonRpcError -32602 */
export const readSubscribeParams = reader(
  Type.Object({
    ...Selection,
    delivery: Type.Object({ mode: Type.Enum(['webhook']), url: Url, secret: Type.String({ maxLength: 128 }) }),
    ttlMs: Type.Optional(Milliseconds),
  }),
)

/** Reads the params of `events/unsubscribe`. @throws JsonRpcError -32602 */
export const readUnsubscribeParams = reader(
  Type.Object({ name: Name, arguments: Selection.arguments, delivery: Type.Object({ url: Url }) }),
)

/** Returns `true` if a subscription has no end: `ttlMs` is `null`, which is not the same as an absent one. */
export function isEndless({ params }: JsonRpcRequest): boolean {
  return isJsonObject(params) && params['ttlMs'] === null
}

/** Returns a function that checks params. An optional member that is `null` counts as absent. */
function reader<Input extends TObject>(input: Input): (request: JsonRpcRequest) => Static<Input> {
  // Compiled at the first request: a server without events does not need it.
  let check: ((params: unknown) => Static<Input>) | undefined
  return ({ params = {} }) => {
    check ??= compileArguments({
      whose: 'method',
      input,
      refused: (problems) =>
        new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid params: ${problemsText(problems)}`, {
          data: { problems },
        }),
    })
    return check(params)
  }
}

/** The events that a request names: a type and a channel. */
export interface SelectedEvents {
  readonly type: EventType
  readonly channel: string
}

interface EventsRequest {
  readonly name: string
  readonly arguments?: object
}

/**
 * Returns the events that a request names, if the caller may have them in this mode.
 * @throws JsonRpcError -32602, and errors of the extension; BrokerError FORBIDDEN, CHANNEL_RESERVED
 */
export function selectEvents(
  types: ReadonlyMap<string, EventType>,
  { name, arguments: args = {} }: EventsRequest,
  mode: DeliveryMode,
  { broker, dialect }: { readonly broker: BrokerHandle; readonly dialect: EventsDialect },
): SelectedEvents {
  const type = types.get(name)
  if (type === undefined) {
    throw dialect.error('NOT_FOUND', `there is no event type ${shownText(name)}; events/list has all`)
  }
  const channel = type.channelOf(args)
  if (isReservedChannel(channel)) {
    throw new BrokerError('CHANNEL_RESERVED', `channels beginning with ${RESERVED_PREFIX} belong to the broker`)
  }
  if (!type.modes.includes(mode)) {
    throw dialect.error('UNSUPPORTED', `${name} has no delivery by ${mode}; it has ${type.modes.join(' and ')}`)
  }
  broker.authorize(actionFor(type, mode), type.channelType, channel)
  return { type, channel }
}

/**
 * Returns where the events of a store begin.
 * @throws JsonRpcError -32602 for a cursor that this server did not make for the channel
 */
export async function startOf(
  log: EventLog,
  channel: string,
  { cursor, maxAgeMs }: { readonly cursor?: string; readonly maxAgeMs?: number },
): Promise<EventStart> {
  if (cursor === undefined) return { position: await log.end(), truncated: false }
  return log.resume(positionIn(channel, cursor), maxAgeMs)
}

function positionIn(channel: string, cursor: string): EventPosition {
  const position = readCursor(channel, cursor)
  if (position !== undefined) return position
  throw new JsonRpcError(
    JSON_RPC_CODES.INVALID_PARAMS,
    'invalid params: unknown cursor; use a cursor that this server returned for the same event type and arguments, or null for events from now on',
  )
}
