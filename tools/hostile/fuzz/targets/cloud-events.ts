import { Buffer } from 'node:buffer'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'

import { allSteps } from '@signalbox/http-kit/internal'
import * as fc from 'fast-check'

import { CeError } from '../../../../packages/connector-cloudevents/src/errors.ts'
import { contentMode, readEvents } from '../../../../packages/connector-cloudevents/src/event/read-events.ts'
import type { IncomingEvent } from '../../../../packages/connector-cloudevents/src/event/attributes.ts'
import { FORMS_TAG } from '../../../../packages/connector-cloudevents/src/event/event-tags.ts'
import { cloudEventText } from '../../../../packages/connector-cloudevents/src/event/event-text.ts'
import { readBatch, readStructured } from '../../../../packages/connector-cloudevents/src/event/structured-mode.ts'
import { storeStart } from '../../../../packages/connector-cloudevents/src/routes/subscribe.ts'
import { JSON_UNITS, listText } from '../grammar/json.ts'
import { cloudEventJson } from '../grammar/messages.ts'
import { almost, phrase, textOf, word } from '../grammar/pieces.ts'
import { assertHolds, assertSame, Finding, parserTarget } from '../target.ts'

const INTERNAL: ReadonlySet<string> = new Set(['INTERNAL', 'CONFLICT'])

/** An event keeps its form: its JSON form, read again, is the same event. */
function checkRoundTrip({ message: { body, tags } }: IncomingEvent): void {
  const message = { id: 'i', clientId: 'c', channel: 'c', metadata: '', timestamp: 0, body, tags }
  const { text, isEvent } = cloudEventText('queues', message)
  assertHolds('a stored event is not recognized as one', isEvent)
  assertHolds('an event is on several lines', !/[\r\n]/.test(text))
  let again: IncomingEvent
  try {
    again = allSteps(readStructured(Buffer.from(text)))
  } catch (error) {
    throw new Finding('wrong', `an event cannot be read when it leaves: ${String(error).slice(0, 200)}`, {
      cause: error,
    })
  }
  const { body: bodyAgain, tags: tagsAgain } = again.message
  const { text: textAgain } = cloudEventText('queues', { ...message, body: bodyAgain, tags: tagsAgain })
  assertSame('the event after a second round trip', withoutBlanks(textAgain), withoutBlanks(text))
  assertSame('tags after a round trip', attributesIn(tagsAgain), attributesIn(tags))
  assertSame('data after a round trip', plain(bodyAgain), plain(body))
}

/** Blanks around the data are not part of it. */
function withoutBlanks(text: string): string {
  const at = text.indexOf('"data":') + '"data":'.length
  return `${text.slice(0, at)}${text.slice(at, -1).trim()}}`
}

/** A line end between the parts of JSON text becomes a blank. */
function plain(bytes: Uint8Array): string {
  return Buffer.from(bytes)
    .toString('latin1')
    .replaceAll(/[\r\n]/g, ' ')
    .trim()
}

/** Removes the tag for forms, which the other tags may or may not imply. */
function attributesIn(tags: Readonly<Record<string, string>>): unknown {
  return Object.entries(tags)
    .filter(([name]) => name !== FORMS_TAG)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
}

/** Returns the events, or `undefined` if they are refused with a client error. */
function eventsOf<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof CeError)) throw error
    if (INTERNAL.has(error.code)) throw new Finding('wrong', `an event is refused as ${error.code}`)
    assertHolds(`a refusal takes ${error.message.length} characters`, error.message.length < 4_096)
    return undefined
  }
}

function requestWith(headers: readonly (readonly [name: string, value: string])[]): IncomingMessage {
  const request = new IncomingMessage(new Socket())
  for (const [name, value] of headers) {
    request.rawHeaders.push(name, value)
    request.headers[name.toLowerCase()] ??= value
  }
  return request
}

/** Characters that Node accepts in the value of a header. */
const headerValue = phrase.map((text) =>
  Buffer.from(text)
    .toString('latin1')
    // oxlint-disable-next-line no-control-regex -- control characters are what this leaves out
    .replaceAll(/[\u0000-\u0008\u000a-\u001f\u007f]/g, ''),
)

const ceHeaders = fc.array(
  fc.tuple(
    fc.oneof(
      fc.constantFrom(
        'ce-id',
        'ce-source',
        'ce-type',
        'ce-specversion',
        'ce-subject',
        'ce-time',
        'ce-ext1',
        'CE-Extension',
      ),
      fc.stringMatching(/^ce-[a-z0-9_-]{0,8}$/),
    ),
    fc.oneof(headerValue, fc.constantFrom('1', '/a', '1.0', '"a\\"b"', '%C3%A9', '%ff', '"', '2026-01-31T09:30:00Z')),
  ),
  { maxLength: 10 },
)

const BINARY_BASE: readonly (readonly [string, string])[] = [
  ['ce-specversion', '1.0'],
  ['ce-id', '1'],
  ['ce-source', '/a'],
  ['ce-type', 't'],
]

export const cloudEventTargets = [
  parserTarget({
    name: 'ce-structured',
    about: 'CloudEvents in structured mode, which keep their form',
    input: almost(cloudEventJson, ...JSON_UNITS, '"a1":1,'),
    check(pieces) {
      const event = eventsOf(() => allSteps(readStructured(Buffer.from(textOf(pieces)))))
      if (event !== undefined) checkRoundTrip(event)
    },
  }),
  parserTarget({
    name: 'ce-batch',
    about: 'CloudEvents in batches',
    input: almost(listText(cloudEventJson), ...JSON_UNITS, '{},'),
    check(pieces) {
      const events = eventsOf(() => allSteps(readBatch(Buffer.from(textOf(pieces)))))
      for (const event of events?.slice(0, 10) ?? []) checkRoundTrip(event)
    },
  }),
  parserTarget({
    name: 'ce-binary',
    about: 'CloudEvents in binary mode, in every content mode that their headers select',
    input: fc.record({
      complete: fc.boolean(),
      headers: ceHeaders,
      contentType: fc.oneof(
        fc.constantFrom(
          '',
          'application/json',
          'text/plain',
          'application/cloudevents+json',
          'application/cloudevents-batch+json; charset=utf-8',
        ),
        headerValue,
      ),
      typePump: fc.nat(20_000),
      body: almost(fc.oneof(phrase, fc.constantFrom('{"a":1}', '[1]', '"x"')), ...JSON_UNITS),
      encoding: fc.constantFrom('utf8' as const, 'latin1' as const),
    }),
    check({ complete, headers, contentType, typePump, body, encoding }) {
      const long = typePump > 19_000 ? contentType + '; a'.repeat(typePump) : contentType
      const request = requestWith([
        ...(complete ? BINARY_BASE : []),
        ...headers,
        ...(long === '' ? [] : [['content-type', long] as const]),
      ])
      const bytes = Buffer.from(textOf(body), encoding)
      const events = eventsOf(() => allSteps(readEvents(contentMode(request.headers), request, bytes)))
      for (const event of events ?? []) checkRoundTrip(event)
    },
  }),
  parserTarget({
    name: 'ce-tags',
    about: 'messages with tags that look like those of an event',
    input: fc.record({
      tags: fc.dictionary(
        fc.oneof(
          fc.constantFrom(
            'ce_specversion',
            'ce_id',
            'ce_source',
            'ce_type',
            'ce_:forms',
            'ce_datacontenttype',
            'ce_a',
            'ce_data',
            'ce_data_base64',
            'brokertags',
          ),
          word,
        ),
        fc.oneof(
          fc.constantFrom(
            '1.0',
            '1',
            'a=integer,b=boolean,data=base64',
            'data=text',
            'text/plain',
            'application/json',
            'true',
          ),
          phrase,
        ),
      ),
      body: almost(fc.oneof(phrase, fc.constantFrom('{"a":1}', 'null', '"')), ...JSON_UNITS),
      encoding: fc.constantFrom('utf8' as const, 'latin1' as const),
      channel: phrase,
    }),
    check({ tags, body, encoding, channel }) {
      // Half a surrogate pair is refused before a message is stored.
      if (!channel.isWellFormed()) return
      const message = {
        id: 'i',
        clientId: 'c',
        channel,
        metadata: channel,
        timestamp: 0,
        body: Buffer.from(textOf(body), encoding),
        tags,
      }
      const { text } = cloudEventText('queues', message)
      assertHolds('an event is on several lines', !/[\r\n]/.test(text))
      const value: unknown = JSON.parse(text)
      assertHolds('an event is not an object', typeof value === 'object' && value !== null && !Array.isArray(value))
    },
  }),
  parserTarget({
    name: 'ce-store-start',
    about: 'the start of a subscription to an events store',
    input: fc.record({
      type: fc.integer({ min: 0, max: 7 }),
      value: fc.option(word, { nil: null }),
      lastEventId: fc.option(almost(word, '9', '0'), { nil: null }),
    }),
    check: ({ type, value, lastEventId }) =>
      void eventsOf(() => storeStart(type, value ?? undefined, lastEventId === null ? undefined : textOf(lastEventId))),
  }),
]
