import { Buffer } from 'node:buffer'

import type { BrokerHandle, Message, PolicyAction } from '@signalbox/broker-core'
import { decodeText } from '@signalbox/broker-core'
import { assertChannelName, shownText } from '@signalbox/broker-core/internal'
import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import {
  argument,
  bodyText,
  compileArguments,
  isJsonObject,
  isoTime,
  parseJson,
  problemsText,
} from '@signalbox/http-kit/internal'
import { Type } from 'typebox'
import { Compile } from 'typebox/schema'

import type { Occurrence } from '../wire/events-profile.ts'

/** The types of channels whose messages are events. */
type EventChannelType = 'events_store' | 'events' | 'queues'

/** A way in which a client gets events. */
export type DeliveryMode = 'poll' | 'push' | 'webhook'

/** An event type that an operator defines: the messages of one channel whose bodies match a schema. */
export interface EventTypeOptions {
  /** 1 to 128 letters, digits, dots, dashes and underscores. */
  readonly name: string
  /** A description for models. */
  readonly description: string
  readonly channel: string
  /** @default 'events_store' */
  readonly channelType?: 'events_store' | 'events'
  /** A JSON Schema of objects. A message is an event if its body is JSON and matches. */
  readonly payloadSchema: JsonObject
}

/** An event type with its parts for the protocol. */
export interface EventType {
  readonly name: string
  readonly description: string
  readonly channelType: EventChannelType
  /** The channel of an operator's type; `undefined` if it is an argument. */
  readonly channel: string | undefined
  readonly modes: readonly DeliveryMode[]
  readonly inputSchema: object
  readonly payloadSchema: object
  /** Returns `true` if data matches the schema of an operator's type; `undefined` for other types. */
  readonly accepts: ((data: JsonObject) => boolean) | undefined
  /**
   * Returns the channel that the arguments of a subscription name.
   * @throws JsonRpcError -32602
   */
  readonly channelOf: (args: unknown) => string
}

const REPLAYED: readonly DeliveryMode[] = ['poll', 'push', 'webhook']
const LIVE: readonly DeliveryMode[] = ['push', 'webhook']

const MESSAGE = {
  type: 'object',
  properties: {
    channel: { type: 'string' },
    body: { type: 'string', description: 'The text of the message, or base64.' },
    body_encoding: { const: 'base64' },
    metadata: { type: 'string' },
    tags: { type: 'object', additionalProperties: { type: 'string' } },
    preview: { type: 'string', description: 'The first KiB of a body that is too large for an event.' },
    bytes: { type: 'integer', description: 'The size of a message that has only a preview.' },
  },
  required: ['channel'],
}

const STORED = { ...MESSAGE, properties: { ...MESSAGE.properties, sequence: { type: 'integer' } } }

const WAITING = {
  type: 'object',
  properties: { channel: { type: 'string' }, waiting: { type: 'integer' } },
  required: ['channel', 'waiting'],
}

/** Returns the types of every server. Each has the channel as its argument. */
function builtInTypes(): readonly EventType[] {
  return [
    ofArgument({
      name: 'events_store.appended',
      description:
        'An event was appended to an events store. Events after a cursor are delivered again. A large body has a preview; events_store_read with from_sequence returns it.',
      channelType: 'events_store',
      modes: REPLAYED,
      payloadSchema: STORED,
    }),
    ofArgument({
      name: 'events.published',
      description:
        'An event was published to an events channel. Events are not stored: those of a disconnect are lost.',
      channelType: 'events',
      modes: LIVE,
      payloadSchema: MESSAGE,
    }),
    ofArgument({
      name: 'queue.message_waiting',
      description:
        'A queue has messages to receive. A hint without their content: call queue_receive. At most one in a second.',
      channelType: 'queues',
      modes: ['push'],
      payloadSchema: WAITING,
    }),
  ]
}

function ofArgument(
  source: Pick<EventType, 'name' | 'description' | 'channelType' | 'modes' | 'payloadSchema'>,
): EventType {
  const input = Type.Object({ channel: argument.channel('The channel.') }, { additionalProperties: false })
  const check = compileArguments({
    whose: 'event type',
    input,
    refused: (problems) =>
      new JsonRpcError(
        JSON_RPC_CODES.INVALID_PARAMS,
        `invalid arguments for ${source.name}: ${problemsText(problems)}`,
        { data: { problems } },
      ),
  })
  return {
    ...source,
    channel: undefined,
    inputSchema: { ...input },
    accepts: undefined,
    channelOf: (args) => check(args).channel,
  }
}

const NAME = /^[A-Za-z0-9._-]{1,128}$/

/**
 * Returns the event types of a server by name.
 * @throws RangeError for an operator's type that is not valid
 */
export function createEventTypes(own: readonly EventTypeOptions[]): ReadonlyMap<string, EventType> {
  const types = new Map(builtInTypes().map((type) => [type.name, type]))
  for (const each of own) {
    const type = operatorsType(each)
    if (types.has(type.name)) throw new RangeError(`event type ${type.name}: the name is used already; change it`)
    types.set(type.name, type)
  }
  return types
}

function operatorsType({
  name,
  description,
  channel,
  channelType = 'events_store',
  payloadSchema,
}: EventTypeOptions): EventType {
  if (!NAME.test(name)) {
    throw new RangeError(
      `event type ${shownText(name)}: the name must have 1 to 128 letters, digits, dots, dashes and underscores`,
    )
  }
  try {
    assertChannelName(channel)
  } catch (error) {
    throw new RangeError(`event type ${name}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
  return {
    name,
    description,
    channelType,
    channel,
    modes: channelType === 'events_store' ? REPLAYED : LIVE,
    inputSchema: { type: 'object', properties: {}, additionalProperties: false },
    payloadSchema,
    accepts: matcherOf(name, payloadSchema),
    channelOf(args) {
      if (isJsonObject(args) && Object.keys(args).length === 0) return channel
      throw new JsonRpcError(
        JSON_RPC_CODES.INVALID_PARAMS,
        `invalid arguments for ${name}: it has none; leave them out`,
      )
    },
  }
}

function matcherOf(name: string, payloadSchema: JsonObject): (data: JsonObject) => boolean {
  try {
    const validator = Compile(payloadSchema)
    return (data) => validator.Check(data)
  } catch (error) {
    throw new RangeError(`event type ${name}: payloadSchema is not a JSON Schema`, { cause: error })
  }
}

/** The action that each mode needs on the channel. A hint about a queue is for those who may receive. */
export function actionFor({ channelType }: Pick<EventType, 'channelType'>, mode: DeliveryMode): PolicyAction {
  if (channelType === 'queues') return 'receive'
  return mode === 'poll' ? 'read' : 'subscribe'
}

/**
 * Returns the modes that a caller can use.
 * @param webhooks `true` if this server delivers events to webhooks
 */
export function modesFor(broker: BrokerHandle, type: EventType, webhooks: boolean): readonly DeliveryMode[] {
  const { channel, channelType } = type
  return type.modes.filter((mode) => {
    if (mode === 'webhook' && !webhooks) return false
    const action = actionFor(type, mode)
    return channel === undefined ? broker.mayPermit(action, channelType) : broker.permits(action, channelType, channel)
  })
}

/** The most bytes of body, metadata and tags that an event contains; a larger message has a preview. */
const MAX_CONTENT_BYTES = 16_384

/** The largest body of a message that is an event of an operator's type: its data is the whole body. */
const MAX_TYPED_BYTES = 196_608

/** The most bytes of a preview. */
const PREVIEW_BYTES = 1_024

/**
 * Returns a message as an event of a type; `undefined` if it is none: its body does not match the operator's schema, or
 * has more than {@link MAX_TYPED_BYTES}.
 * @param cursor The position after the event; `null` for types that cannot be replayed
 */
export function occurrenceOf(type: EventType, message: Message, cursor: string | null): Occurrence | undefined {
  const data = type.accepts === undefined ? contentOf(message) : typedContent(message, type.accepts)
  if (data === undefined) return undefined
  return { eventId: message.id, name: type.name, timestamp: isoTime(message.timestamp), data, cursor }
}

function contentOf(message: Message): JsonObject {
  const { channel, body, metadata, tags } = message
  const sequence = 'sequence' in message ? { sequence: message.sequence } : {}
  const bytes = body.byteLength + Buffer.byteLength(metadata) + tagBytes(tags)
  if (bytes > MAX_CONTENT_BYTES) {
    const { body: preview, ...encoding } = bodyText(startOf(body))
    return { channel, ...sequence, preview, ...encoding, bytes }
  }
  return { channel, ...sequence, ...bodyText(body), metadata, tags }
}

/** Returns the first bytes of a body, without a part of a character. */
function startOf(body: Uint8Array): Uint8Array {
  let end = PREVIEW_BYTES
  while (end > PREVIEW_BYTES - 4 && ((body[end] ?? 0) & 0xc0) === 0x80) end--
  return body.subarray(0, end)
}

function tagBytes(tags: Message['tags']): number {
  let bytes = 0
  for (const [key, value] of Object.entries(tags)) bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  return bytes
}

function typedContent({ body }: Message, accepts: (data: JsonObject) => boolean): JsonObject | undefined {
  if (body.byteLength > MAX_TYPED_BYTES) return undefined
  const text = decodeText(body)
  const parsed = text === undefined ? undefined : parseJson(text)
  if (parsed === undefined || !('value' in parsed) || !isJsonObject(parsed.value)) return undefined
  return accepts(parsed.value) ? parsed.value : undefined
}
