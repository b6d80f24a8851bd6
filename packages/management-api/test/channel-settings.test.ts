import { ChannelSettingsLog } from '@signalbox/channel-settings'
import { expect, onTestFinished, test } from 'vitest'

import type { ManagementServices } from '../src/index.ts'
import type { ServerSettings } from './management-server.ts'
import { bearer, manage, tokens } from './management-server.ts'

async function manageSettings(options: ServerSettings = {}) {
  const services: Partial<ManagementServices> = {}
  const server = await manage({ ...options, services, started: false })
  const log = await ChannelSettingsLog.open(server.system, server.engine.settings, {
    failed: (error) => {
      throw error
    },
  })
  onTestFinished(() => log[Symbol.asyncDispose]())
  Object.assign(services, { channelSettings: log })
  server.start()
  return { ...server, log }
}

test('channel settings - operators write, read and remove entries, and the audit log has each change', async () => {
  const { act, get, broker } = await manageSettings()
  await broker.as({ clientId: 'a' }).queues.send('jobs.images', { body: '{}' })
  const { data: written } = await act<{ revision: number }>('set_channel_settings', {
    type: 'queues',
    match: 'jobs.*',
    description: 'jobs',
    retry: { max_receive_count: 5 },
  })
  expect(written).toMatchObject({
    source: 'api',
    retry: { max_receive_count: 5 },
    changed_by: 'anonymous',
    matched: { total: 1, channels: ['jobs.images'] },
  })
  const { data } = await get('/api/channel_settings?type=queues&channel=jobs.images')
  expect(data).toMatchObject({
    items: [{ match: 'jobs.*', revision: written.revision }],
    effective: { description: 'jobs', retry: { max_receive_count: 5, backoff_factor: 2 } },
    origins: { description: { match: 'jobs.*', source: 'api' }, retry: { match: 'jobs.*', source: 'api' } },
  })
  expect((await get('/api/channel_settings?type=events')).data.total).toBe(0)
  const removed = await act('remove_channel_settings', { type: 'queues', match: 'jobs.*', revision: written.revision })
  expect(removed).toMatchObject({ error: false })
  expect((await get('/api/channel_settings')).data.total).toBe(0)
  await expect
    .poll(async () => (await get('/api/audit')).data.items.map((item) => [item['action'], item.channel]))
    .toEqual([
      ['remove_channel_settings', 'jobs.*'],
      ['set_channel_settings', 'jobs.*'],
    ])
})

test('channel settings - a dry run lists the channels, and changes nothing', async () => {
  const { act, get, broker, log } = await manageSettings()
  for (const queue of ['jobs', 'jobs.images', 'other'])
    await broker.as({ clientId: 'a' }).queues.send(queue, { body: '1' })
  const entry = { type: 'queues', match: 'jobs', description: 'x' }
  expect((await act('set_channel_settings', { ...entry, dry_run: true })).data).toMatchObject({
    matched: { total: 1, channels: ['jobs'] },
    dry_run: true,
  })
  expect((await get('/api/channel_settings')).data.total).toBe(0)
  await log.set({ type: 'queues', match: '*', description: 'all' }, 'a')
  const all = { type: 'queues', match: '*', dry_run: true }
  expect((await act('remove_channel_settings', all)).data).toMatchObject({ matched: { total: 3 }, dry_run: true })
  expect((await get('/api/channel_settings')).data.total).toBe(1)
})

test('channel settings - an invalid entry is refused with every problem', async () => {
  const { act, get } = await manageSettings()
  const retry = { min_backoff_seconds: 400, dead_letter_queue: 'jobs' }
  expect(await act('set_channel_settings', { type: 'queues', match: 'jobs', retry })).toMatchObject({
    error: true,
    data: {
      code: 'SETTINGS_INVALID',
      problems: [{ argument: 'retry.min_backoff_seconds' }, { argument: 'retry.dead_letter_queue' }],
    },
  })
  expect((await get('/api/channel_settings')).data.total).toBe(0)
})

test('channel settings - entries of the file are listed, and changed only there', async () => {
  const { act, get, log } = await manageSettings()
  log.useFile([{ type: 'queues', match: 'jobs', source: 'file', description: 'x' }])
  expect((await get('/api/channel_settings')).data.items).toEqual([
    { type: 'queues', match: 'jobs', source: 'file', description: 'x' },
  ])
  expect(await act('remove_channel_settings', { type: 'queues', match: 'jobs' })).toMatchObject({
    error: true,
    error_string: expect.stringContaining('the one of CHANNEL_SETTINGS_FILE is changed there'),
    data: { code: 'SETTINGS_NOT_FOUND' },
  })
})

test('channel settings - a change with an old revision is a CONFLICT, and channel needs its type', async () => {
  const { act, get } = await manageSettings()
  const entry = { type: 'queues', match: 'jobs', description: 'x' }
  await act('set_channel_settings', { ...entry, revision: 0 })
  expect(await act('set_channel_settings', { ...entry, revision: 0 })).toMatchObject({ data: { code: 'CONFLICT' } })
  expect(await get('/api/channel_settings?channel=jobs')).toMatchObject({
    data: { code: 'PARAMETER_INVALID', problems: [{ parameter: 'type' }] },
  })
})

test('channel settings - a name needs ReadWrite, a pattern needs Admin', async () => {
  const { act } = await manageSettings({ authenticator: tokens() })
  const set = (match: string, role: string) =>
    act('set_channel_settings', { type: 'queues', match, description: 'x' }, bearer(`alice:${role}`))
  expect(await set('jobs', 'ReadOnly')).toMatchObject({ status: 403, data: { code: 'ROLE_MISSING' } })
  expect(await set('jobs', 'ReadWrite')).toMatchObject({ status: 200, error: false })
  expect(await set('jobs.*', 'ReadWrite')).toMatchObject({ status: 403, data: { code: 'ROLE_MISSING', role: 'Admin' } })
  expect(await set('jobs.*', 'Admin')).toMatchObject({ status: 200, error: false })
  const remove = { type: 'queues', match: 'jobs.*' }
  expect(await act('remove_channel_settings', remove, bearer('alice:ReadWrite'))).toMatchObject({ status: 403 })
})
