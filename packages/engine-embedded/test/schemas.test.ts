import type { SettingsEntry } from '@signalbox/broker-core'
import { expect, test } from 'vitest'

import { ALICE, failure, openBroker } from './broker-fixture.ts'
import { openRouted, queued, stored } from './routing-fixture.ts'

const SCHEMA = { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] }

const schema = { default: 'job:2', versions: { 'job:1': { type: 'string' }, 'job:2': SCHEMA } }

const entry = (
  type: SettingsEntry['type'],
  match: string,
  given: Partial<SettingsEntry> = { schema },
): SettingsEntry => ({
  type,
  match,
  source: 'api',
  ...given,
})

const GOOD = JSON.stringify({ url: 'https://example.com' })

async function openWithSchemas() {
  const opened = await openBroker()
  const { engine, broker } = opened
  engine.settings.replace([
    entry('queues', 'c*'),
    entry('events', 'c'),
    entry('events_store', 'c'),
    entry('commands', 'c'),
    entry('queries', 'c'),
  ])
  const user = broker.as(ALICE)
  await user.commands.subscribe('c', {}, () => ({ body: 'no JSON' }))
  await user.queries.subscribe('c', {}, () => ({ body: 'no JSON' }))
  const sends = {
    queues: (body: string | Uint8Array, tags = {}) => user.queues.send('c', { body, tags }),
    events: (body: string | Uint8Array, tags = {}) => user.events.publish('c', { body, tags }),
    events_store: (body: string | Uint8Array, tags = {}) => user.eventsStore.publish('c', { body, tags }),
    commands: (body: string | Uint8Array, tags = {}) => user.commands.send('c', { body, tags }, { timeoutMs: 5_000 }),
    queries: (body: string | Uint8Array, tags = {}) => user.queries.send('c', { body, tags }, { timeoutMs: 5_000 }),
  }
  return { ...opened, user, sends: Object.entries(sends) }
}

test('schemas - all five types refuse a body that does not match, and take one that does', async () => {
  const { sends, user } = await openWithSchemas()
  for (const [type, send] of sends) {
    const { code, message, details } = await failure(send('{"url": 7}'))
    expect(code).toBe('SCHEMA_MISMATCH')
    expect(message).toBe(`the body does not match the schema "job:2" of ${type} "c": /url must be string, not integer`)
    expect(details).toEqual({
      type,
      channel: 'c',
      version: 'job:2',
      problems: [{ pointer: '/url', problem: 'must be string, not integer' }],
    })
    await send(GOOD)
  }
  expect(await user.queues.peek('c', { maxMessages: 9 })).toHaveLength(1)
  expect(await user.eventsStore.read('c', { maxMessages: 9 })).toHaveLength(1)
})

test('schemas - a body must be JSON: text, bytes and nothing are refused', async () => {
  const { sends } = await openWithSchemas()
  for (const [, send] of sends) {
    for (const body of ['hello', '', new Uint8Array([0xff, 0xfe])]) {
      expect((await failure(send(body))).message).toMatch(/: it must be JSON$/)
    }
  }
})

test('schemas - the tag ce_dataschema selects a version, and an unknown one is refused', async () => {
  const { sends } = await openWithSchemas()
  for (const [type, send] of sends) {
    await send('"a text"', { ce_dataschema: 'job:1' })
    expect(await failure(send(GOOD, { ce_dataschema: 'job:1' }))).toMatchObject({ code: 'SCHEMA_MISMATCH' })
    const { code, message } = await failure(send(GOOD, { ce_dataschema: '__proto__' }))
    expect(code).toBe('SCHEMA_MISMATCH')
    expect(message).toBe(`${type} "c" has no schema "__proto__"; allowed for dataschema are job:1, job:2`)
  }
})

test('schemas - a batch with a wrong body stores nothing', async () => {
  const { user } = await openWithSchemas()
  const call = user.queues.sendBatch('c', [{ body: GOOD }, { body: '{}' }, { body: GOOD }])
  expect(await failure(call)).toMatchObject({ code: 'SCHEMA_MISMATCH' })
  await user.queues.sendBatch('c', [{ body: GOOD }, { body: GOOD }])
  expect(await user.queues.peek('c', { maxMessages: 9 })).toHaveLength(2)
})

test('schemas - a large body, and one of many values, is refused without a check', async () => {
  const { user } = await openWithSchemas()
  const send = (body: unknown) => failure(user.queues.send('c', { body: JSON.stringify(body) }))
  expect((await send({ url: 'x'.repeat(1_100_000) })).message).toMatch(
    /it has 1100010 bytes; with a schema, at most 1048576 are allowed$/,
  )
  expect((await send(Array.from({ length: 40_000 }, () => 0))).message).toMatch(/it has too many values/)
})

test('schemas - dead letters and tombstones are exempt', async () => {
  const { engine, user } = await openWithSchemas()
  engine.settings.replace([])
  await user.queues.send('c', { body: 'no JSON', maxReceiveCount: 1, deadLetterQueue: 'c.dead' })
  await user.eventsStore.publish('c', { body: 'no JSON', key: 'k' })
  engine.settings.replace([entry('queues', 'c*'), entry('events_store', 'c')])
  const [delivery] = await user.queues.receive('c')
  await user.queues.nack([delivery!.receipt])
  expect(await user.queues.peek('c.dead', { maxMessages: 9 })).toHaveLength(1)
  await user.eventsStore.publish('c', { body: '', key: 'k', tombstone: true })
})

test('schemas - a changed entry applies to the next send', async () => {
  const { engine, user } = await openWithSchemas()
  const version = { default: 'v', versions: { v: { type: 'integer' } } }
  engine.settings.replace([entry('queues', 'c', { schema: version })])
  await user.queues.send('c', { body: '7' })
  expect(await failure(user.queues.send('c', { body: GOOD }))).toMatchObject({ code: 'SCHEMA_MISMATCH' })
  engine.settings.replace([])
  await user.queues.send('c', { body: 'anything' })
})

test('schemas - a copy that does not match its target is not made, and counts as a routing failure', async () => {
  const rules = [{ key: 'in', routes: 'queues:checked;events_store:checked;events:checked;queues:free' }]
  const { engine, alice, failures, copies } = await openRouted(rules)
  engine.settings.replace([entry('queues', 'checked'), entry('events_store', 'checked'), entry('events', 'checked')])
  await alice.queues.send('in', { body: 'no JSON' })
  expect(failures.map(({ to, reason, code }) => `${to?.type}:${to?.channel} ${reason} ${code}`).toSorted()).toEqual([
    'events:checked schema SCHEMA_MISMATCH',
    'events_store:checked schema SCHEMA_MISMATCH',
    'queues:checked schema SCHEMA_MISMATCH',
  ])
  expect(failures[0]?.detail).toMatch(/^the body does not match the schema "job:2" of .* it must be JSON$/)
  expect(copies).toHaveLength(1)
  expect(await queued(alice, 'free')).toEqual(['no JSON'])
  expect(await queued(alice, 'checked')).toEqual([])
  await alice.queues.send('in', { body: GOOD })
  expect(await queued(alice, 'checked')).toEqual([GOOD])
  expect(await stored(alice, 'checked')).toEqual([GOOD])
})

test('schemas - a refused message is not routed', async () => {
  const { engine, alice, failures, copies } = await openRouted([{ key: 'in', routes: 'queues:out' }])
  engine.settings.replace([entry('queues', 'in')])
  expect(await failure(alice.queues.send('in', { body: '{}' }))).toMatchObject({ code: 'SCHEMA_MISMATCH' })
  expect([copies, failures]).toEqual([[], []])
})

test('schemas - a channel with an entry of a newer version, or a schema that is not valid, accepts nothing', async () => {
  const { engine, user } = await openWithSchemas()
  engine.settings.replace([
    entry('queues', 'newer', { unreadable: true }),
    entry('queues', 'wrong', { schema: { default: 'v', versions: { v: { type: 'text' } } } }),
  ])
  const newer = await failure(user.queues.send('newer', { body: GOOD }))
  expect(newer.code).toBe('SETTING_UNSUPPORTED')
  expect(newer.message).toMatch(/^an entry of the channel settings for queues "newer" is of a newer version/)
  const wrong = await failure(user.queues.send('wrong', { body: GOOD }))
  expect(wrong.code).toBe('SETTING_UNSUPPORTED')
  expect(wrong.message).toMatch(/the schema is not valid: \/type must be one or more of null/)
  await user.queues.send('other', { body: 'anything' })
})
