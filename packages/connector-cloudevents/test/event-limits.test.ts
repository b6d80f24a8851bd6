import { Buffer } from 'node:buffer'

import { CloudEvent } from 'cloudevents'
import * as fc from 'fast-check'
import { cases } from '@signalbox/testkit/property-cases'
import { expect, onTestFinished, test, vi } from 'vitest'

import { hasPlainFormats } from '../src/event/attributes.ts'
import { readBatch } from '../src/event/structured-mode.ts'
import { event, openCe } from './ce-server.ts'

const STRUCTURED = { 'content-type': 'application/cloudevents+json' }
const BATCH = { 'content-type': 'application/cloudevents-batch+json' }

function nested(depth: number): string {
  return `${'['.repeat(depth)}7${']'.repeat(depth)}`
}

/** The text of an event with these members besides the required ones. */
function withMembers(members: string): string {
  return `${JSON.stringify(event()).slice(0, -1)},${members}}`
}

function attributes(count: number): string {
  return Array.from({ length: count }, (_, i) => `"ext${i}":"v"`).join(',')
}

function batch(count: number): string {
  return JSON.stringify(Array.from({ length: count }, () => event()))
}

function headers(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`ce-x${i}`, 'v']))
}

test('limits - an event over the limit of depth, keys or attributes is refused before it is built', async () => {
  const { base, post, user } = await openCe()
  const parse = vi.spyOn(JSON, 'parse')
  onTestFinished(() => parse.mockRestore())
  const keys = Array.from({ length: 100_001 }, (_, i) => `"${i}":0`).join(',')
  const cases: readonly [body: string, message: string][] = [
    [withMembers(`"data":${nested(128)}`), 'the body is nested deeper than 128 levels'],
    [withMembers(`"data":${nested(2_000_000)}`), 'the body is nested deeper than 128 levels'],
    [withMembers(`"ext":${nested(128)}`), 'the body is nested deeper than 128 levels'],
    [withMembers(`"data":{${keys}}`), 'more than 100000 keys'],
    [withMembers(attributes(253)), 'an event has more than 256 attributes'],
  ]
  for (const [body, message] of cases) {
    parse.mockClear()
    const answer = await fetch(`${base}/ce/queue/send?channel=c`, {
      method: 'POST',
      headers: STRUCTURED,
      body,
    })
    expect(parse.mock.calls.filter(([text]) => text.length > 100)).toEqual([])
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({
      message: expect.stringContaining(message),
      data: { code: 'EVENT_INVALID' },
    })
  }
  expect(await user.channels.list()).toEqual([])
  expect(await post('queue/send?channel=c', withMembers(attributes(252)), STRUCTURED)).toMatchObject({ status: 202 })
  expect(await post('queue/send?channel=c', withMembers(`"data":${nested(127)}`), STRUCTURED)).toMatchObject({
    status: 202,
  })
})

test('limits - a large event is parsed at most a megabyte at a time; data that is not JSON is refused', async () => {
  const { post, base } = await openCe()
  const parse = vi.spyOn(JSON, 'parse')
  onTestFinished(() => parse.mockRestore())
  const keys = Array.from({ length: 12_000 }, (_, i) => `"${i}${'k'.repeat(90)}":${i}`).join(',')
  const data = `{"a":[{${keys}}],"b":{${keys}}}`
  for (const [text, headers] of [
    [withMembers(`"data":${data}`), STRUCTURED],
    [`[${JSON.stringify(event())}, ${withMembers(`"data":${data}`)} ]`, BATCH],
  ] as const) {
    parse.mockClear()
    const sent = await fetch(`${base}/ce/queue/send?channel=c`, { method: 'POST', headers, body: text })
    expect(sent.status).toBe(202)
    expect(Math.max(...parse.mock.calls.map(([part]) => part.length))).toBeLessThan(1_100_000)
    for (const [from, to] of [
      [':11999}', ':11999]'],
      [':11999}', ':11999},'],
      [':6000,', ':6000,,'],
      ['"6000k', '6000k'],
    ] as const) {
      const broken = text.slice(0, text.lastIndexOf(from)) + to + text.slice(text.lastIndexOf(from) + from.length)
      expect(await post('queue/send?channel=c', broken, headers)).toMatchObject({
        status: 400,
        message: expect.stringContaining('the body is not JSON'),
      })
    }
  }
})

test('limits - large data is read a piece at a time: text, JSON and base64 arrive as they were sent', async () => {
  const { post, user } = await openCe()
  let id = 0
  const send = (members: object): Promise<unknown> =>
    post('queue/send?channel=large', JSON.stringify({ ...event(), id: String(id++), ...members }), STRUCTURED)
  // Pieces end within a pair of surrogates, for one of the two.
  for (const text of ['🙂'.repeat(300_000), `x${'🙂'.repeat(300_000)}`]) {
    for (const datacontenttype of ['text/plain', 'application/json']) {
      expect(await send({ datacontenttype, data: text })).toMatchObject({ status: 202 })
      const [message] = await user.queues.receive('large')
      const want = datacontenttype === 'text/plain' ? text : JSON.stringify(text)
      expect(Buffer.from(message?.message.body ?? '').toString() === want).toBe(true)
    }
  }
  for (const length of [1_000_000, 1_000_001, 1_000_002]) {
    const bytes = Buffer.alloc(length, 'bytes \xff')
    const base64 = bytes.toString('base64')
    expect(await send({ data_base64: base64 })).toMatchObject({ status: 202 })
    const [message] = await user.queues.receive('large')
    expect(bytes.equals(message?.message.body ?? new Uint8Array(0))).toBe(true)
    for (const broken of [
      `${base64}=`,
      base64.slice(0, -1),
      `${base64.slice(0, 700_000)}!${base64.slice(700_001)}`,
      // Padding at the end of a piece.
      `${base64.slice(0, 262_140)}AAA=${base64.slice(262_144)}`,
      `${base64.slice(0, 262_143)} ${base64.slice(262_144)}`,
    ]) {
      expect(await send({ data_base64: broken })).toMatchObject({
        status: 400,
        message: expect.stringContaining('data_base64 must be a string of base64'),
      })
    }
  }
})

test('limits - an attribute has at most 8,192 characters, a time 64, and one too long is not parsed', async () => {
  const { post } = await openCe()
  const send = (members: object): Promise<unknown> =>
    post('queue/send?channel=c', JSON.stringify({ ...event(), ...members }), STRUCTURED)
  expect(await send({ source: `/${'a'.repeat(8_191)}`, ext: 'x'.repeat(8_192) })).toMatchObject({ status: 202 })
  for (const name of ['source', 'subject', 'type', 'id', 'dataschema', 'ext']) {
    expect(await send({ [name]: 'a'.repeat(8_193) }), name).toMatchObject({
      status: 400,
      message: `invalid CloudEvent: the attribute ${name} has 8193 characters; it may have 8192`,
    })
  }
  expect(await send({ time: `2026-01-01T00:00:00.${'0'.repeat(50)}Z` })).toMatchObject({
    status: 400,
    message: 'invalid CloudEvent: the attribute time has 71 characters; it may have 64',
  })
  expect(await post('queue/send?channel=c', withMembers(`"ext":${'1'.repeat(1_001)}`), STRUCTURED)).toMatchObject({
    status: 400,
    message: expect.stringContaining('a number of more than 1000 characters'),
  })
})

test('limits - a batch has at most 1,000 events', async () => {
  const { post, user } = await openCe()
  expect(await post('queue/send?channel=c', batch(1001), BATCH)).toMatchObject({
    status: 400,
    message: 'invalid CloudEvent: the batch has more than 1000 events; send several batches',
  })
  expect(await post('queue/send?channel=c', `[${'[],'.repeat(3_000_000)}[]]`, BATCH)).toMatchObject({ status: 400 })
  expect(await post('queue/send?channel=c', `[${withMembers(`"data":${nested(127)}`)}]`, BATCH)).toMatchObject({
    status: 400,
    message: 'invalid CloudEvent: the body is nested deeper than 128 levels',
  })
  expect(await user.channels.list()).toEqual([])
  expect(await post('queue/send?channel=c', batch(1000), BATCH)).toMatchObject({ status: 202, data: { count: 1000 } })
})

test('limits - in binary mode an event has at most 256 attributes', async () => {
  const { post } = await openCe()
  const head = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/t', 'ce-type': 't' }
  expect(await post('send/event?channel=c', '', { ...head, ...headers(253) })).toMatchObject({
    status: 400,
    message: 'invalid CloudEvent: an event has more than 256 attributes',
  })
  expect(await post('send/event?channel=c', '', { ...head, ...headers(251) })).toMatchObject({ status: 202 })
})

test('limits - a deep message that another version or surface stored leaves as data_base64, without being parsed', async () => {
  const { post, user, subscribe } = await openCe()
  const stream = await subscribe('events-store?channel=s')
  const parse = vi.spyOn(JSON, 'parse')
  onTestFinished(() => parse.mockRestore())
  const parsed = (text: string): number => parse.mock.calls.filter(([given]) => given === text).length
  const tags = { ce_specversion: '1.0', ce_id: '1', ce_source: '/t', ce_type: 't' }
  for (const [depth, asJson] of [
    [127, true],
    [128, false],
    [400_000, false],
  ] as const) {
    const text = nested(depth)
    const body = Buffer.from(text)
    const form = asJson ? `"data":${text}` : `"data_base64":"${body.toString('base64')}"`
    parse.mockClear()
    await user.eventsStore.publish('s', { body, tags })
    expect((await stream.next()).data.includes(form), `${depth} over a stream`).toBe(true)
    await user.queues.send('q', { body })
    const received = await post('queue/receive?channel=q', undefined)
    expect(received.text.includes(form), `${depth} from a queue`).toBe(true)
    expect(parsed(text)).toBe(0)
  }
})

test('limits - a reason of a rejection that is nested too deep is taken as text', async () => {
  const { post, subscribe, user } = await openCe()
  const stream = await subscribe('commands?channel=c')
  const command = user.commands.send('c', { body: Buffer.from('{}') }, { timeoutMs: 20_000 })
  const { brokerrequestid } = await stream.nextJson()
  const text = nested(200)
  const head = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/t', 'ce-type': 't' }
  await post(`send/response?request_id=${brokerrequestid}&is_error=true`, text, head)
  expect(await command).toMatchObject({ executed: false, error: text })
})

const REQUIRED = { specversion: '1.0', id: '1', source: '/test', type: 't' } as const

function isValid(attributes: Readonly<Record<string, string>>): boolean {
  try {
    return new CloudEvent({ ...REQUIRED, ...attributes }, true).id === '1'
  } catch {
    return false
  }
}

function isPlain(attributes: Readonly<Record<string, string>>): boolean {
  return hasPlainFormats(new Map(Object.entries({ ...REQUIRED, ...attributes })))
}

const uri = fc
  .tuple(
    fc.constantFrom('', '/', '//', 'http:', 'https://', 'urn:', 'a1+.-:', '1a:', ':', 'mailto:', 'x:/', 'x:///'),
    fc.string({
      unit: fc.constantFrom(...Array.from('ab1_~.-:/%#?@[ "ü!$&\'()*+,;=')),
      maxLength: 12,
    }),
  )
  .map(([start, rest]) => start + rest)
const digits = (most: number): fc.Arbitrary<string> => fc.nat(most).map((n) => `${n}`.padStart(2, '0'))
const time = fc
  .tuple(
    fc.constantFrom('2024', '2023', '0000', '9999', '24'),
    digits(13),
    digits(32),
    digits(25),
    digits(60),
    digits(61),
    fc.constantFrom('', '.5', '.123456789', '.'),
    fc.constantFrom('Z', '+02:00', '-23:59', '+24:00', '+0200', ''),
  )
  .map(
    ([year, month, day, hour, minute, second, fraction, zone]) =>
      `${year}-${month}-${day}T${hour}:${minute}:${second}${fraction}${zone}`,
  )

test('attributes - a value that passes the quick check of formats passes the check of the official SDK', () => {
  for (const attribute of ['source', 'dataschema'] as const) {
    fc.assert(
      fc.property(uri, (text) => !isPlain({ [attribute]: text }) || isValid({ [attribute]: text })),
      { numRuns: cases(3000), seed: 7 },
    )
  }
  fc.assert(
    fc.property(time, (text) => !isPlain({ time: text }) || isValid({ time: text })),
    { numRuns: cases(3000), seed: 7 },
  )
  for (const attribute of ['subject', 'datacontenttype']) expect(isPlain({ [attribute]: '' })).toBe(false)
})

test('attributes - usual values take the quick check', () => {
  for (const attributes of [
    { source: '/sensors/7', time: '2026-01-31T09:30:00Z' },
    { source: 'https://shop.example:8443/orders/', time: '2024-12-30T23:59:59.123456789+02:00' },
    { source: '/sensors?room=7&floor=2', dataschema: 'https://example.com/schemas?name=a@1#/definitions/b' },
    { source: 'https://shop.example#basket', dataschema: 'urn:example:schema?=1' },
    { source: 'urn:example:sensor:7', dataschema: 'https://example.com/schemas/v1.json' },
  ]) {
    expect(isPlain(attributes), JSON.stringify(attributes)).toBe(true)
  }
})

test('CE-5 - batches: reading small events pauses after 64 KiB of text, not after each event', () => {
  const data = 'x'.repeat(1_000)
  const batch = Buffer.from(
    JSON.stringify(Array.from({ length: 256 }, (_, id) => ({ ...event({ id: `${id}` }), data }))),
  )
  const steps = readBatch(batch)
  let pauses = 0
  let step = steps.next()
  for (; step.done !== true; step = steps.next()) pauses++
  expect(step.value).toHaveLength(256)
  expect(pauses).toBeGreaterThan(3)
  expect(pauses).toBeLessThan(12)
})

test('CE-5 - structured: attributes keep their order, also those whose names are digits', () => {
  const members = '"z":"1","7":"2","a":3'
  const steps = readBatch(Buffer.from(`[${withMembers(members)}]`))
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  const names = Object.keys(step.value[0]?.message.tags ?? {})
  expect(names.filter((name) => /_[z7a]$/.test(name))).toEqual(['ce_z', 'ce_7', 'ce_a'])
})
