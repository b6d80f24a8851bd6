import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

import { jsonText, listText, objectText, oneOfTexts, quoted } from './json.ts'
import { anyText, phrase, weighted, word } from './pieces.ts'

/** A few channels, so that inputs interact; sometimes any text. */
export const channelName: Arbitrary<string> = weighted(
  [16, fc.constantFrom('fuzz.a', 'fuzz.b', 'fuzz.c', 'fuzz.d')],
  [1, phrase],
  [1, fc.constantFrom('fuzz.*', 'fuzz.>', '>', '*', '_AGENTS_.discovery', '_AGENTS_.x', 'fuzz..a', ' fuzz')],
)

const ids = weighted(
  [6, oneOfTexts('1', '0', '"a"', '-1', '"é"', '9007199254740993')],
  [1, oneOfTexts('null', '1.0', '1e2', 'true', '{}', '[]', '""', '"\\ud800"')],
)

/** A JSON-RPC request, notification or response as text. */
export function jsonRpc(method: Arbitrary<string>, params: Arbitrary<string>): Arbitrary<string> {
  return weighted(
    [10, objectText({ jsonrpc: oneOfTexts('"2.0"'), id: ids, method, params })],
    [1, objectText({ jsonrpc: oneOfTexts('"2.0"'), method, params })],
    [1, objectText({ jsonrpc: oneOfTexts('"2.0"'), id: ids, result: jsonText })],
    [1, objectText({ jsonrpc: oneOfTexts('"2.0"'), id: ids, error: jsonText })],
    [1, jsonText],
  )
}

/** Mostly one of the first values, which are always valid. */
function mostly(right: readonly string[], ...wrong: readonly string[]): Arbitrary<string> {
  return weighted([8, oneOfTexts(...right)], [1, oneOfTexts(...wrong)])
}

const STRANGE_NUMBERS = ['-1', '1.5', '"1"', '9007199254740993', '1e400', 'null', '1e2']
const seconds = mostly(['0', '0', '0', '1', '3600'], '1000000000001', ...STRANGE_NUMBERS)
const count = mostly(['1', '2', '10', '100'], '0', '101', ...STRANGE_NUMBERS)

const moment = weighted(
  [6, fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }).map((date) => date.toISOString())],
  [
    1,
    fc.constantFrom(
      '2026-02-30T09:30:00Z',
      '0000-00-00T00:00:00Z',
      '2026-01-31',
      '2026-01-31T09:30Z',
      '9999-12-31T23:59:59.999999999-23:59',
      '+275760-09-13T00:00:00Z',
    ),
  ],
)

const tags = objectText(
  { message_id: quoted(anyText), priority: quoted(anyText), dlq_channel: quoted(channelName) },
  [],
)
const body = weighted([8, quoted(anyText)], [1, oneOfTexts('{{characters:60000}}', '{{characters:1000}}')])

/** Values for arguments and parameters by their names, as JSON text. */
const ARGUMENTS: Readonly<Record<string, Arbitrary<string>>> = {
  channel: quoted(channelName),
  body,
  metadata: body,
  tags,
  delay_seconds: seconds,
  expiration_seconds: seconds,
  max_receive_count: count,
  dead_letter_queue: quoted(channelName),
  max_messages: count,
  wait_timeout_seconds: mostly(['1'], '0', '61', '"1"'),
  timeout_seconds: mostly(['1'], '0', '3601', '"1"', '1e400'),
  count,
  from_sequence: count,
  from_time: quoted(moment),
  type: fc.oneof(oneOfTexts('"queues"', '"events"', '"events_store"', '"commands"', '"queries"'), jsonText),
  pattern: quoted(fc.oneof(channelName, phrase, fc.constantFrom('*', 'fuzz*', '*a*b*', '?', '**'))),
  agent_id: quoted(fc.oneof(fc.constantFrom('agent-one', 'agent-two', 'agent-none'), word)),
  message: body,
  blocking: mostly(['true', 'false'], 'null', '"true"'),
  context_id: body,
  skill_tags: listText(quoted(word)),
  method: quoted(fc.oneof(fc.constantFrom('message/send', 'tasks/get', 'message/stream', 'tasks/cancel'), word)),
  params: jsonText,
  request: jsonText,
  limit: count,
  cursor: quoted(word),
}

const REQUIRED = new Set([
  'channel',
  'body',
  'max_messages',
  'count',
  'type',
  'agent_id',
  'message',
  'method',
  'params',
])

/** Arguments that usually match a list of names. */
export function argumentsText(names: readonly string[]): Arbitrary<string> {
  return objectText(
    Object.fromEntries(names.map((name) => [name, ARGUMENTS[name] ?? jsonText])),
    names.filter((name) => REQUIRED.has(name)),
  )
}

const skill = objectText({
  id: quoted(word),
  name: quoted(phrase),
  description: quoted(phrase),
  tags: listText(quoted(word)),
})

/** An agent card as text. */
export function cardText(url: Arbitrary<string>): Arbitrary<string> {
  return objectText(
    {
      agent_id: quoted(weighted([4, fc.constantFrom('agent-one', 'agent-two', 'a-3')], [1, word])),
      name: quoted(weighted([4, fc.constant('An agent')], [1, phrase])),
      description: quoted(phrase),
      version: quoted(word),
      url: quoted(url),
      capabilities: objectText({ streaming: oneOfTexts('true', 'false') }),
      skills: listText(skill),
      defaultInputModes: listText(quoted(word)),
      protocolVersions: listText(quoted(fc.constantFrom('1.0', '0.3.0', ''))),
      supportedInterfaces: jsonText,
      securitySchemes: jsonText,
      metadata: objectText({}),
      registered_by: quoted(word),
      last_seen: quoted(moment),
    },
    ['agent_id', 'name', 'url'],
  )
}

const base64Data = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => JSON.stringify(Buffer.from(bytes).toString('base64'))),
  mostly(['"AA=="', '"/+8="', 'null'], '"AA"', '"A==="', '"_-8="', '1'),
)

const attributeValue = fc.oneof(
  quoted(weighted([6, fc.constantFrom('a', 'é', 'a b')], [1, anyText])),
  oneOfTexts('1', '-0', '1e2', 'true', 'false', 'null', '2147483648', '1.5'),
)

const DATA_TYPES = [
  'application/json',
  'a/b+json',
  'text/plain',
  'text/xml; charset=utf-16',
  'application/octet-stream',
]

/** Members that describe the data, and the data. */
const eventData = weighted(
  [4, jsonText.map((text) => `"data":${text}`)],
  [
    2,
    fc
      .tuple(fc.constantFrom(...DATA_TYPES), quoted(anyText))
      .map(([type, text]) => `"datacontenttype":"${type}","data":${text}`),
  ],
  [
    2,
    fc
      .tuple(fc.constantFrom(...DATA_TYPES), base64Data)
      .map(([type, text]) => `"datacontenttype":"${type}","data_base64":${text}`),
  ],
  [1, fc.tuple(quoted(phrase), jsonText).map(([type, text]) => `"datacontenttype":${type},"data":${text}`)],
)

const eventAttributes = objectText(
  {
    specversion: mostly(['"1.0"'], '"0.3"', '1.0'),
    id: quoted(weighted([6, fc.constant('1')], [1, phrase])),
    source: quoted(weighted([6, fc.constantFrom('/fuzz', 'urn:x', 'http://a/b')], [1, phrase])),
    type: quoted(fc.constantFrom('t', 'com.example')),
    subject: quoted(channelName),
    time: quoted(moment),
    dataschema: quoted(weighted([6, fc.constant('http://a/b')], [1, phrase])),
    extension: attributeValue,
  },
  ['specversion', 'id', 'source', 'type', 'subject'],
)

/** A CloudEvent in JSON as text. */
export const cloudEventJson: Arbitrary<string> = fc
  .tuple(eventAttributes, eventData)
  .map(([attributes, data]) => (attributes === '{}' ? `{${data}}` : attributes.replace(/\}$/, `,${data}}`)))

const HOOK_SECRET = `"whsec_${Buffer.alloc(32, 1).toString('base64')}"`

const hookUrl = fc.oneof(
  quoted(fc.constantFrom('https://example.invalid/hook', 'http://127.0.0.1:1/', 'https://[::1]/', 'https://a:b@c/#d')),
  quoted(phrase),
)

/** Cursors of a channel, and texts that are almost one. */
export const cursorText: Arbitrary<string> = fc.oneof(
  fc
    .tuple(fc.constantFrom('1', '2', ''), fc.oneof(fc.nat().map(String), word), word, word)
    .map((parts) => Buffer.from(parts.join('.')).toString('base64url')),
  word,
)

const filter = objectText({
  sql: quoted(fc.oneof(fc.constantFrom("type = 'a'", 'total > 1', 'EXISTS a', 'a) OR (b'), phrase)),
})

/** The body of a subscription of `/ce/subscriptions`. */
export const subscriptionText: Arbitrary<string> = objectText(
  {
    sink: hookUrl,
    protocol: oneOfTexts('"HTTP"', '"MQTT"'),
    config: objectText(
      {
        channel: quoted(channelName),
        type: oneOfTexts('"events_store"', '"events"', '"queues"', '"commands"'),
        mode: oneOfTexts('"structured"', '"binary"', '"batch"'),
        start: oneOfTexts('"new"', '"first"', '1', '0', '1.5', '9007199254740993'),
        ordered: oneOfTexts('true', 'false'),
        secret: oneOfTexts(HOOK_SECRET, '"whsec_AAAA"', '""'),
      },
      ['channel'],
    ),
    filters: listText(filter),
  },
  ['sink', 'config'],
)

/** The methods of events. */
export const EVENT_METHODS = [
  'events/list',
  'events/poll',
  'events/stream',
  'events/subscribe',
  'events/unsubscribe',
] as const

/**
 * The params of a request about events.
 * @param meta The member `_meta`
 */
export function eventParams(meta: Arbitrary<string> = fc.constant('{}')): Arbitrary<string> {
  return objectText(
    {
      name: oneOfTexts('"events_store.appended"', '"events.published"', '"queue.message_waiting"', '"none"', '7'),
      arguments: objectText({ channel: quoted(channelName) }),
      cursor: fc.oneof(quoted(cursorText), fc.constantFrom('null', '"{{cursor}}"', '7')),
      maxAgeMs: oneOfTexts('0', '1000', '-1', '1e400', 'null'),
      maxEvents: oneOfTexts('1', '100', '0', '1.5', '9007199254740993'),
      ttlMs: oneOfTexts('60000', 'null', '-1'),
      delivery: fc.oneof(
        objectText({
          mode: oneOfTexts('"webhook"', '"mail"'),
          hookUrl,
          secret: oneOfTexts(HOOK_SECRET, '"whsec_AAAA"'),
        }),
        jsonText,
      ),
      _meta: meta,
    },
    ['name', 'arguments', '_meta'],
  )
}
