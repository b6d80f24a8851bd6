import { SignalboxError } from './errors.ts'

/** A received message. */
export interface Message<T = unknown> {
  /** JSON is parsed, text is a string, other content is a `Uint8Array`; `undefined` without content. */
  readonly data: T
  /** The id that the sender gave to the message. */
  readonly id: string
  /** The channel. */
  readonly channel: string
  /** The sender's URI: the attribute `source`. */
  readonly source: string
  /** The attribute `type`; `signalbox.message` for messages that were not sent as a CloudEvent. */
  readonly type: string
  /** The sender's time. */
  readonly time: Date | undefined
  /** The content type, if the sender gave one. */
  readonly contentType: string | undefined
  /** Free text that an MCP client sent along. */
  readonly metadata: string
  /** Tags, such as `dlq_reason` of a dead letter. */
  readonly tags: Readonly<Record<string, string>>
  /** The trace in which the message was sent, if its sender or the server recorded one. */
  readonly trace: TraceContext | undefined
  /** The other attributes of the CloudEvent. */
  readonly extensions: Readonly<Record<string, unknown>>
}

/** The place of a message in a trace (W3C Trace Context). */
export interface TraceContext {
  readonly traceparent: string
  readonly tracestate?: string | undefined
}

/** A CloudEvent in its JSON form. */
export type EventObject = Readonly<Record<string, unknown>>

/** The attributes of a message under way. */
export interface EventAttributes {
  readonly id: string
  readonly source: string
  readonly type: string
  readonly channel: string
  /** The content type, if it is not the usual one of the data. */
  readonly contentType?: string | undefined
}

const JSON_TYPE = /^[^/;]+\/(?:[^;]+\+)?json\s*(?:;|$)/i
const TEXT_TYPE = /^text\//i

/** The members of the JSON form of a CloudEvent for its data. */
type Content = Readonly<Record<string, unknown>>

/** Returns the content of data: bytes and strings unchanged, anything else as JSON. */
export function contentOf(data: unknown, contentType: string | undefined): Content {
  if (data instanceof Uint8Array) {
    return { datacontenttype: contentType ?? 'application/octet-stream', data_base64: toBase64(data) }
  }
  const type = contentType ?? (typeof data === 'string' ? 'text/plain' : 'application/json')
  const isText = typeof data === 'string' || JSON_TYPE.test(type)
  return { datacontenttype: type, data: isText ? data : JSON.stringify(data) }
}

/** Returns the CloudEvent of data in its JSON form. */
export function eventText({ id, source, type, channel }: EventAttributes, content: Content): string {
  return JSON.stringify({ specversion: '1.0', id, source, type, subject: channel, ...content })
}

/** Attributes that are members of a {@link Message}. */
const KNOWN = new Set([
  'specversion',
  'id',
  'source',
  'type',
  'subject',
  'time',
  'datacontenttype',
  'data',
  'data_base64',
  'brokermetadata',
  'brokertags',
])

/** Returns the message of a CloudEvent. The channel of an event without a subject is `channel`. */
export function messageOf(event: EventObject, channel: string): Message {
  const contentType = asString(event['datacontenttype'])
  const time = asString(event['time'])
  return {
    data: dataOf(event, contentType),
    id: asString(event['id']) ?? '',
    channel: asString(event['subject']) ?? channel,
    source: asString(event['source']) ?? '',
    type: asString(event['type']) ?? '',
    time: time === undefined ? undefined : new Date(time),
    contentType,
    metadata: asString(event['brokermetadata']) ?? '',
    tags: tagsOf(event['brokertags']),
    trace: traceOf(event),
    extensions: Object.fromEntries(Object.entries(event).filter(([name]) => !KNOWN.has(name))),
  }
}

/** Returns the trace of a CloudEvent: its extension for distributed tracing. */
function traceOf(event: EventObject): TraceContext | undefined {
  const traceparent = asString(event['traceparent'])
  return traceparent === undefined ? undefined : { traceparent, tracestate: asString(event['tracestate']) }
}

/** Returns the content of a CloudEvent: JSON and text in base64 are decoded too. */
export function dataOf(event: EventObject, contentType: string | undefined): unknown {
  const base64 = asString(event['data_base64'])
  if (base64 === undefined) return event['data']
  const bytes = fromBase64(base64)
  if (contentType === undefined) return bytes
  try {
    if (JSON_TYPE.test(contentType)) return JSON.parse(decoded(bytes))
    if (TEXT_TYPE.test(contentType)) return decoded(bytes)
  } catch {
    // The content is not of its type: the caller gets the bytes.
  }
  return bytes
}

function decoded(bytes: Uint8Array<ArrayBuffer>): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
}

function tagsOf(json: unknown): Readonly<Record<string, string>> {
  const text = asString(json)
  const tags = text === undefined ? undefined : parsed(text)
  return isObject(tags)
    ? Object.fromEntries(Object.entries(tags).filter((pair): pair is [string, string] => typeof pair[1] === 'string'))
    : {}
}

/** Returns the parsed JSON; `undefined` for other text. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function asString(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/**
 * Returns the value as an object.
 * @throws SignalboxError RESPONSE_INVALID
 */
export function objectOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value
  throw new SignalboxError('RESPONSE_INVALID', `${what} is not a JSON object; check the URL of the server`)
}

/** Returns the bytes of base64 text. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i)
  return bytes
}

/** Characters for each call of `fromCharCode`, whose number of arguments is limited. */
const CHUNK = 8192

/** Returns bytes as base64 text. */
function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let i = 0; i < bytes.length; i += CHUNK) binary += String.fromCharCode(...bytes.subarray(i, i + CHUNK))
  return btoa(binary)
}
