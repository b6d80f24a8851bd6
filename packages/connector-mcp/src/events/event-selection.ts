import type { BrokerHandle } from '@signalbox/broker-core'
import { BrokerError, isReservedChannel, RESERVED_PREFIX } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import type { EventsDialect } from '../wire/events-profile.ts'
import type { EventPosition } from './event-cursor.ts'
import { readCursor } from './event-cursor.ts'
import type { EventLog, EventStart } from './event-log.ts'
import type { DeliveryMode, EventType } from './event-types.ts'
import { actionFor } from './event-types.ts'

/** The events that a request names: a type and a channel. */
export interface SelectedEvents {
  readonly type: EventType
  readonly channel: string
}

interface Selection {
  readonly name: string
  readonly arguments?: object
}

/**
 * Returns the events that a request names, if the caller may have them in this mode.
 * @throws JsonRpcError -32602, and errors of the extension; BrokerError FORBIDDEN, CHANNEL_RESERVED
 */
export function selectEvents(
  types: ReadonlyMap<string, EventType>,
  { name, arguments: args = {} }: Selection,
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
