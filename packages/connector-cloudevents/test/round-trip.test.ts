import { Buffer } from 'node:buffer'

import { CloudEvent, HTTP } from 'cloudevents'
import * as fc from 'fast-check'
import { anyCharacter } from '@signalbox/testkit/any-character'
import { cases } from '@signalbox/testkit/property-cases'
import { expect, test } from 'vitest'

import { event, openCe } from './ce-server.ts'

test('CE-1 - round trip: the official SDK sends in both modes and gets equal events back over SSE', async () => {
  const { base, subscribe } = await openCe()
  const events = [
    { data: { order: 7, lines: [{ sku: 'ü', count: 2 }] }, datacontenttype: 'application/json' },
    { data: 'plain text, ünï¢ödé', datacontenttype: 'text/plain' },
    { data: '<order n="7"/>', datacontenttype: 'application/xml' },
    { data: new Uint8Array([0, 1, 2, 253, 254, 255]), datacontenttype: 'application/octet-stream' },
    { data: [1, 'zwei', null], datacontenttype: 'application/vnd.example+json' },
    { datacontenttype: 'application/json' },
    { data: 'a JSON string', datacontenttype: 'application/json' },
  ].map(
    (more, i) =>
      new CloudEvent<unknown>({
        id: `e-${i}`,
        source: 'https://shop.example/orders',
        type: 'com.example.order.created',
        subject: 'orders.eu',
        time: '2026-01-31T09:30:00.250Z',
        dataschema: 'https://shop.example/schemas/order#v1',
        tenant: 'acme',
        ...more,
      }),
  )
  const stream = await subscribe('events?channel=orders.eu')
  for (const sent of events) {
    for (const mode of ['structured', 'binary'] as const) {
      // In binary mode the SDK writes a JSON string without its quotes, and the binding does not say what is text.
      if (mode === 'binary' && (sent.data === 'a JSON string' || sent.datacontenttype === 'application/xml')) continue
      const { headers, body } = HTTP[mode](sent)
      const response = await fetch(`${base}/ce/send/event`, {
        method: 'POST',
        headers: headers as Record<string, string>,
        body: body as string,
      })
      expect(response.status).toBe(202)
      const { event: name, data } = await stream.next()
      expect(name).toBe('cloudevent')
      const back = HTTP.toEvent({ headers: { 'content-type': 'application/cloudevents+json' }, body: data })
      expect(normal(back as CloudEvent<unknown>)).toEqual(normal(sent))
    }
  }
})

/** As plain values; the SDK reads base64 as an array of its own kind. */
function normal({ data, ...attributes }: CloudEvent<unknown>): object {
  const { data_base64: _, ...rest } = { ...attributes }
  return { ...rest, data: ArrayBuffer.isView(data) ? [...(data as Uint8Array)] : data }
}

const name = fc
  .stringMatching(/^[a-z][a-z0-9]{0,15}$/)
  .filter(
    (text) =>
      !['id', 'source', 'specversion', 'type', 'datacontenttype', 'dataschema', 'subject', 'time', 'data'].includes(
        text,
      ),
  )
/** What CloudEvents strings may hold. */
const text = fc
  .string({ unit: anyCharacter, maxLength: 24 })
  // oxlint-disable-next-line no-control-regex -- what the type system forbids
  .filter((value) => !/[\u0000-\u001f\u007f-\u009f\ufdd0-\ufdef\p{Noncharacter_Code_Point}]/u.test(value))
const extension = fc.oneof(
  text.map((value) => JSON.stringify(value)),
  fc.maxSafeInteger().map(String),
  fc.bigInt().map(String),
  fc.boolean().map(String),
)
const bigNumber = fc.oneof(
  fc.bigInt({ min: -(2n ** 200n), max: 2n ** 200n }).map(String),
  fc.constantFrom('1e400', '0.1000000000000000055511151231257827', '-0', '1E+2', '9007199254740993'),
)
const jsonData = fc.oneof(
  fc.json(),
  bigNumber,
  bigNumber.map((number) => `{"b":${number},"a":[${number}],"b":1}`),
  fc.json().map((json) => `{\r\n  "x" : ${json} ,\n\t"x": 2\n}`),
)
const data = fc.oneof(
  fc.constant({ attribute: {}, member: '' }),
  jsonData.map((json) => ({ attribute: {}, member: `,"data":${json}` })),
  jsonData.map((json) => ({ attribute: { datacontenttype: 'application/json' }, member: `,"data":${json}` })),
  fc
    .string({ unit: anyCharacter })
    .map((value) => ({ attribute: { datacontenttype: 'text/plain' }, member: `,"data":${JSON.stringify(value)}` })),
  fc
    .tuple(fc.uint8Array(), fc.constantFrom(undefined, 'application/json', 'image/png', 'text/plain'))
    .map(([bytes, type]) => ({
      attribute: type === undefined ? {} : { datacontenttype: type },
      member: `,"data_base64":"${Buffer.from(bytes).toString('base64')}"`,
    })),
)

test('CE-2, CE-3 - round trip: random events come back member for member, in the very digits', async () => {
  const { post, subscribe } = await openCe()
  const streams = {
    event: await subscribe('events?channel=c'),
    'event-store': await subscribe('events-store?channel=c'),
  }
  await fc.assert(
    fc.asyncProperty(
      text.filter((value) => value !== ''),
      fc.dictionary(name, extension, { maxKeys: 5, noNullPrototype: true }),
      data,
      fc.constantFrom('event', 'event-store'),
      async (id, extensions, { attribute, member }, pattern) => {
        const attributes = JSON.stringify({ ...event({ id, subject: 'c' }), ...attribute }).slice(1, -1)
        const more = Object.entries(extensions).map(([key, value]) => `,"${key}":${value}`)
        const sent = `{${attributes}${more.join('')}${member}}`
        const answer = await post(`send/${pattern}`, sent, { 'content-type': 'application/cloudevents+json' })
        expect(answer.status, answer.message).toBe(202)
        const { data: back, event: kind } = await streams[pattern].next()
        expect(kind).toBe('cloudevent')
        // Line ends between the parts of JSON text become blanks: an event is one line.
        expect(back).toBe(sent.replace(/[\r\n]/g, ' '))
      },
    ),
    { numRuns: cases(300), seed: 7 },
  )
})

/** HTTP binding 3.1.3.2, as the sender does it. */
function encode(value: string): string {
  return value.replace(/[^\x21\x23\x24\x26-\x7e]/gu, (char) =>
    [...Buffer.from(char)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
  )
}

test('CE-2, CE-4 - round trip: random events in binary mode come back, percent-encoded on the way', async () => {
  const { post, subscribe } = await openCe()
  const stream = await subscribe('events?channel=c')
  await fc.assert(
    fc.asyncProperty(
      text.filter((value) => value !== ''),
      fc.dictionary(name, text, { maxKeys: 5, noNullPrototype: true }),
      fc.uint8Array({ minLength: 1 }),
      async (id, extensions, bytes) => {
        const headers: Record<string, string> = {
          'content-type': 'application/octet-stream',
          'ce-specversion': '1.0',
          'ce-id': encode(id),
          'ce-source': '/binary',
          'ce-type': 't',
        }
        for (const [key, value] of Object.entries(extensions)) headers[`ce-${key}`] = encode(value)
        const answer = await post('send/event?channel=c', bytes, headers)
        expect(answer.status, answer.message).toBe(202)
        expect(await stream.nextJson()).toEqual({
          ...extensions,
          specversion: '1.0',
          id,
          source: '/binary',
          type: 't',
          datacontenttype: 'application/octet-stream',
          data_base64: Buffer.from(bytes).toString('base64'),
        })
      },
    ),
    { numRuns: cases(200), seed: 11 },
  )
})
