import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type { SettingsEntry } from '@signalbox/broker-core'
import { PAUSED_UNTIL_RESUMED } from '@signalbox/broker-core'
import { expect, onTestFinished, test } from 'vitest'

import { startHost } from './mcp-host.ts'

// cspell:ignore partitionkey
const JOB = {
  type: 'object',
  properties: {
    url: { type: 'string', maxLength: 200 },
    size: { enum: ['small', 'large'] },
  },
  required: ['url'],
  additionalProperties: false,
}

const SETTINGS: readonly SettingsEntry[] = [
  {
    type: 'queues',
    match: 'jobs.*',
    source: 'api',
    description: 'Images to resize.',
    schema: { default: 'urn:job:2', versions: { 'urn:job:1': { type: 'string' }, 'urn:job:2': JOB } },
    groups: { mode: 'ordered', max_in_flight_per_group: 1 },
    consumers: { paused_until: '2999-01-01T00:00:00Z', max_per_second: 0, max_in_flight: 0 },
  },
  {
    type: 'queries',
    match: 'large',
    source: 'api',
    schema: { default: 'v', versions: { v: { description: 'x'.repeat(17_000), type: 'integer' } } },
  },
]

/** Calls tools as a model does: with the texts of a result, and its structured content. */
async function connect() {
  const host = await startHost()
  host.broker.settings.replace(SETTINGS)
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(new URL(host.url)))
  onTestFinished(() => client.close())
  // The client checks structured content against the output schemas that it knows.
  await client.listTools()
  const call = async (name: string, args: Record<string, unknown>) => {
    const { content, isError, structuredContent } = (await client.callTool({ name, arguments: args })) as CallToolResult
    const texts = content.map((block) => (block.type === 'text' ? block.text : ''))
    return { texts, isError, structuredContent }
  }
  return { host, call }
}

test('schemas - a model learns the form of bodies from channel_info, also before the channel exists', async () => {
  const { call } = await connect()
  const { texts, isError, structuredContent } = await call('channel_info', { channel: 'jobs.images', type: 'queues' })
  expect(isError).toBe(false)
  expect(texts).toEqual([
    '{"name":"jobs.images","type":"queues","is_active":false,"incoming":0,"outgoing":0}',
    [
      'The channel does not exist yet. The first message creates it.',
      'Description: Images to resize.',
      `Bodies must match the JSON Schema "urn:job:2": ${JSON.stringify(JOB)}`,
      'Other versions, which the tag ce_dataschema of a message selects: urn:job:1.',
      'Messages need a group: set the tag ce_partitionkey or group.',
      'Receivers get nothing until 2999-01-01T00:00:00.000Z: the queue is paused.',
    ].join('\n'),
  ])
  expect(structuredContent).toEqual({
    name: 'jobs.images',
    type: 'queues',
    is_active: false,
    incoming: 0,
    outgoing: 0,
    description: 'Images to resize.',
    schema: { version: 'urn:job:2', json_schema: JOB, other_versions: ['urn:job:1'] },
    group_required: true,
    paused_until: '2999-01-01T00:00:00.000Z',
  })
})

test('schemas - channel_info shows the pause of an operator, which no entry has', async () => {
  const { host, call } = await connect()
  const pause = { reason: 'upgrade', changedBy: 'alice' }
  host.broker.pauses.set('other', { ...pause, until: Date.parse('2999-01-01T00:00:00Z') })
  host.broker.pauses.set('stopped', { ...pause, until: PAUSED_UNTIL_RESUMED })
  const info = (channel: string) => call('channel_info', { channel, type: 'queues' })
  const other = await info('other')
  expect(other.structuredContent).toMatchObject({ paused_until: '2999-01-01T00:00:00.000Z' })
  expect(other.texts[1]).toContain('Receivers get nothing until 2999-01-01T00:00:00.000Z: the queue is paused.')
  expect((await info('stopped')).texts[1]).toContain('until an operator resumes it: the queue is paused.')
})

test('schemas - a wrong body is refused with all problems, and the remedy leads to a right one', async () => {
  const { call } = await connect()
  const tags = { group: 'a' }
  const refused = await call('queue_send', { channel: 'jobs.images', body: '{"uri":"x","size":"medium"}', tags })
  expect(refused.isError).toBe(true)
  expect(refused.texts).toEqual([
    'SCHEMA_MISMATCH: The body does not match the schema "urn:job:2" of queues "jobs.images": it must have "url", which is missing; ' +
      '/size must be "small" or "large"; /uri is not allowed; allowed are url, size. ' +
      'Call channel_info to see the schema, and send a body that matches it. The tag ce_dataschema selects a version.',
  ])
  const sent = await call('queue_send', { channel: 'jobs.images', body: '{"url":"x","size":"small"}', tags })
  expect(sent.isError).toBe(false)
  const { structuredContent } = await call('channel_info', { channel: 'jobs.images', type: 'queues' })
  expect(structuredContent).toMatchObject({ incoming: 1, waiting: 1, schema: { version: 'urn:job:2' } })
})

test('schemas - requests are refused before a responder gets them; replies are free', async () => {
  const { host, call } = await connect()
  const bodies: string[] = []
  await host.user.queries.subscribe('large', {}, ({ body }) => {
    bodies.push(Buffer.from(body).toString())
    return { body: 'not a number' }
  })
  expect(await call('query_send', { channel: 'large', body: '"7"' })).toMatchObject({ isError: true })
  expect(await call('query_send', { channel: 'large', body: '7' })).toMatchObject({
    isError: false,
    texts: ['not a number'],
  })
  expect(bodies).toEqual(['7'])
})

test('schemas - a large schema is only named, and channels without settings are as before', async () => {
  const { call } = await connect()
  const { texts, structuredContent } = await call('channel_info', { channel: 'large', type: 'queries' })
  expect(structuredContent).toMatchObject({ schema: { version: 'v', other_versions: [] } })
  expect(texts.join('').length).toBeLessThan(400)
  await call('events_store_publish', { channel: 'plain', body: 'x' })
  expect(await call('channel_info', { channel: 'plain', type: 'events_store' })).toEqual({
    isError: false,
    texts: [expect.any(String), 'Also: first_sequence 1, last_sequence 1.'],
    structuredContent: {
      name: 'plain',
      type: 'events_store',
      is_active: true,
      incoming: 1,
      outgoing: 0,
      first_sequence: 1,
      last_sequence: 1,
    },
  })
  expect(await call('channel_info', { channel: 'absent', type: 'queues' })).toMatchObject({ isError: true })
})
