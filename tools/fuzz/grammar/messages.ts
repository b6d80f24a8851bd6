import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

import { jsonString, jsonText, listText, objectText, oneOfTexts, quoted } from './json.ts'
import { phrase, word } from './pieces.ts'

/** A few channels, so that inputs meet each other; now and then anything. */
export const channelName: Arbitrary<string> = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('fuzz.a', 'fuzz.b', 'fuzz.c', 'fuzz.d') },
  { weight: 1, arbitrary: phrase },
  {
    weight: 1,
    arbitrary: fc.constantFrom('fuzz.*', 'fuzz.>', '>', '*', '_AGENTS_.discovery', '_AGENTS_.x', 'fuzz..a', ' fuzz'),
  },
)

const ids = fc.oneof(
  { weight: 6, arbitrary: oneOfTexts('1', '0', '"a"', '-1', '"é"', '9007199254740993') },
  { weight: 1, arbitrary: oneOfTexts('null', '1.0', '1e2', 'true', '{}', '[]', '""', '"\\ud800"') },
)

/** A JSON-RPC request, notification or response as text. */
export function jsonRpc(method: Arbitrary<string>, params: Arbitrary<string>): Arbitrary<string> {
  return fc.oneof(
    { weight: 10, arbitrary: objectText({ jsonrpc: oneOfTexts('"2.0"'), id: ids, method, params }) },
    { weight: 1, arbitrary: objectText({ jsonrpc: oneOfTexts('"2.0"'), method, params }) },
    { weight: 1, arbitrary: objectText({ jsonrpc: oneOfTexts('"2.0"'), id: ids, result: jsonText }) },
    { weight: 1, arbitrary: objectText({ jsonrpc: oneOfTexts('"2.0"'), id: ids, error: jsonText }) },
    { weight: 1, arbitrary: jsonText },
  )
}

const whole = fc.oneof(
  { weight: 6, arbitrary: oneOfTexts('0', '1', '2', '10', '100', '3600') },
  { weight: 1, arbitrary: oneOfTexts('-1', '1.5', '"1"', '9007199254740991', '9007199254740993', '1e400', 'null') },
)

const moment = fc.oneof(
  fc.date({ noInvalidDate: false }).map((date) => (Number.isNaN(date.getTime()) ? 'null' : date.toISOString())),
  fc.constantFrom(
    '2026-01-31T09:30:00Z',
    '2026-02-30T09:30:00Z',
    '0000-00-00T00:00:00Z',
    '2026-01-31',
    '2026-01-31T09:30Z',
    '9999-12-31T23:59:59.999999999-23:59',
  ),
)

const tags = objectText({ message_id: quoted(word), priority: quoted(phrase), dlq_channel: quoted(channelName) })
const body = fc.oneof(jsonString, quoted(fc.constantFrom('text', '{"a":1}', '[]', '\ud800')))

/** Values for arguments and parameters by their names, as JSON text. */
export const ARGUMENTS: Readonly<Record<string, Arbitrary<string>>> = {
  channel: quoted(channelName),
  body,
  metadata: body,
  tags,
  delay_seconds: whole,
  expiration_seconds: whole,
  max_receive_count: whole,
  dead_letter_queue: quoted(channelName),
  max_messages: whole,
  wait_timeout_seconds: oneOfTexts('1', '1', '2', '0', '61', '"1"'),
  timeout_seconds: oneOfTexts('1', '1', '2', '0', '3601', '"1"', '1e400'),
  count: whole,
  from_sequence: whole,
  from_time: quoted(moment),
  type: fc.oneof(oneOfTexts('"queues"', '"events"', '"events_store"', '"commands"', '"queries"'), jsonText),
  pattern: quoted(fc.oneof(channelName, phrase, fc.constantFrom('*', 'fuzz*', '*a*b*', '?', '**'))),
  agent_id: quoted(fc.oneof(fc.constantFrom('agent-one', 'agent-two', 'agent-none'), word)),
  message: body,
  blocking: oneOfTexts('true', 'false', 'null', '"true"'),
  context_id: body,
  skill_tags: listText(quoted(word)),
  method: quoted(fc.oneof(fc.constantFrom('message/send', 'tasks/get', 'message/stream', 'tasks/cancel'), word)),
  params: jsonText,
  request: jsonText,
  limit: whole,
  cursor: quoted(word),
}

/** Arguments that fit a list of names, most of the time. */
export function argumentsText(names: readonly string[]): Arbitrary<string> {
  return objectText(Object.fromEntries(names.map((name) => [name, ARGUMENTS[name] ?? jsonText])))
}

const skill = objectText({
  id: quoted(word),
  name: quoted(phrase),
  description: quoted(phrase),
  tags: listText(quoted(word)),
})

/** An agent card as text. */
export function cardText(url: Arbitrary<string>): Arbitrary<string> {
  return objectText({
    agent_id: quoted(
      fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom('agent-one', 'agent-two', 'a-3') },
        { weight: 1, arbitrary: word },
      ),
    ),
    name: quoted(fc.oneof({ weight: 4, arbitrary: fc.constant('An agent') }, { weight: 1, arbitrary: phrase })),
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
  })
}

const attributeValue = fc.oneof(
  quoted(phrase),
  oneOfTexts('1', '-0', '1e2', '1.5', 'true', 'false', 'null', '2147483648'),
)

/** A CloudEvent in JSON as text. */
export const cloudEventText: Arbitrary<string> = objectText({
  specversion: oneOfTexts('"1.0"', '"1.0"', '"1.0"', '"0.3"'),
  id: quoted(fc.oneof(fc.constant('1'), phrase)),
  source: quoted(fc.oneof(fc.constantFrom('/fuzz', 'urn:x', 'http://a/b'), phrase)),
  type: quoted(fc.constantFrom('t', 'com.example')),
  subject: quoted(channelName),
  time: quoted(moment),
  datacontenttype: quoted(
    fc.oneof(
      fc.constantFrom(
        'application/json',
        'text/plain',
        'text/xml; charset=utf-16',
        'a/b+json',
        'application/octet-stream',
      ),
      phrase,
    ),
  ),
  dataschema: quoted(fc.oneof(fc.constantFrom('http://a/b'), phrase)),
  extension: attributeValue,
  data: jsonText,
}).chain((text) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant(text) },
    { weight: 1, arbitrary: fc.constant(text.replace('"data":', '"data_base64":')) },
    { weight: 1, arbitrary: base64Data.map((data) => text.replace(/"data":.*\}$/s, `"data_base64":${data}}`)) },
  ),
)

const base64Data = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => JSON.stringify(Buffer.from(bytes).toString('base64'))),
  oneOfTexts('"AA=="', '"AA"', '"A==="', '"_-8="', 'null', '1'),
)
