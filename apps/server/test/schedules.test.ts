import { expect, test } from 'vitest'

import type { CommandResult } from './support/commands.ts'
import { command } from './support/commands.ts'
import { serve, serveAll } from './support/server.ts'

const server = serveAll()

interface Answer {
  readonly error: boolean
  readonly error_string: string
  readonly data: {
    readonly items: readonly { readonly id: string; readonly detail: string }[]
    readonly next_times: readonly string[]
    readonly revision: number
    readonly total: number
  }
}

async function get(path: string): Promise<Answer> {
  return (await (await fetch(server().api.url + path)).json()) as Answer
}

async function act(action: string, body: object): Promise<Answer> {
  const response = await fetch(`${server().api.url}/api/actions/${action}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return (await response.json()) as Answer
}

function run(...args: readonly string[]): Promise<CommandResult> {
  return command(['schedules', ...args], { env: { SIGNALBOX_API_URL: server().api.url } })
}

function schedule(id: string, members: object = {}) {
  const target = { type: 'queues', channel: `to.${id}` }
  return { id, cron: '30 9 * * MON-FRI', time_zone: 'Europe/Berlin', target, message: { body: 'go' }, ...members }
}

test('schedules - an operator writes, lists, pauses, resumes, triggers and removes one', async () => {
  const written = await act('set_schedule', schedule('report', { revision: 0 }))
  expect(written).toMatchObject({ error: false, data: { id: 'report', missed: 0, changed_by: 'anonymous' } })
  expect(written.data.next_times).toHaveLength(3)
  expect(written.data.next_times[0]).toMatch(/T0[78]:30:00\.000Z$/)
  expect((await get('/api/schedules?id=report')).data.items).toMatchObject([schedule('report')])
  expect((await act('pause_schedule', { id: 'report' })).data).toMatchObject({ paused: true, next_times: [] })
  expect((await act('resume_schedule', { id: 'report' })).data).toMatchObject({ paused: false })
  expect(await act('trigger_schedule', { id: 'report' })).toMatchObject({ data: { message_id: expect.any(String) } })
  const worker = server().broker.as({ clientId: 'worker' })
  expect((await worker.queues.receive('to.report')).map(({ message }) => message.tags['schedule_id'])).toEqual([
    'report',
  ])
  expect(await act('remove_schedule', { id: 'report' })).toMatchObject({ error: false, data: { id: 'report' } })
  expect((await get('/api/schedules?id=report')).data.items).toEqual([])
  await expect
    .poll(async () => (await get('/api/audit?channel=to.report')).data.items.map(({ detail }) => detail))
    .toEqual([`report, revision ${written.data.revision}`])
  await expect
    .poll(async () => (await get('/api/audit?action=remove_schedule')).data.items.map(({ detail }) => detail))
    .toEqual(['report'])
})

test('schedules - invalid ones are refused with all reasons, and change nothing', async () => {
  const before = await get('/api/schedules')
  const form = await act('set_schedule', schedule('bad', { cron: 7, every_seconds: 1, color: 'red' }))
  expect(form.error_string).toMatch(/cron is 7.*every_seconds is 1; it must be.*10.*color is unknown/)
  const times = await act('set_schedule', schedule('bad', { cron: '0 0 * * * *', time_zone: 'Europe/Merlin' }))
  expect(times).toMatchObject({ error: true, data: { code: 'ARGUMENT_INVALID' } })
  expect(times.error_string).toMatch(/did you mean Europe\/Berlin\?.*for seconds use every_seconds/)
  for (const action of ['remove_schedule', 'pause_schedule', 'resume_schedule', 'trigger_schedule']) {
    expect(await act(action, { id: 'bad' })).toMatchObject({ error: true, data: { code: 'SCHEDULE_NOT_FOUND' } })
  }
  const twice = await act('set_schedule', schedule('twice'))
  expect(await act('set_schedule', schedule('twice', { revision: 0 }))).toMatchObject({
    error: true,
    data: { code: 'CONFLICT', last: twice.data.revision },
  })
  await act('remove_schedule', { id: 'twice', revision: twice.data.revision })
  expect((await get('/api/schedules')).data).toEqual(before.data)
})

test('schedules - a message is sent at its due time and counted', async () => {
  const { api, broker } = await serve()
  const body = JSON.stringify({
    ...schedule('soon', { cron: undefined, time_zone: undefined, at: new Date(Date.now() + 1_500).toISOString() }),
  })
  const headers = { 'content-type': 'application/json' }
  await fetch(`${api.url}/api/actions/set_schedule`, { method: 'POST', headers, body })
  const received = await broker.as({ clientId: 'worker' }).queues.receive('to.soon', { waitMs: 20_000 })
  expect(received).toHaveLength(1)
  const metrics = async (): Promise<string> => (await fetch(`${api.url}/metrics`)).text()
  await expect.poll(metrics).toContain('broker_schedule_fires_total{outcome="sent"} 1')
  expect(await metrics()).toMatch(/broker_schedule_lag_seconds_count 1/)
})

test('schedules - the commands write, list, trigger, pause, resume and remove one', async () => {
  const set = ['set', 'nightly', '{"n": 1}', '--every', '1h', '--queue', 'jobs.nightly']
  expect(await run(...set)).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^nightly: next at 20.*Z\n$/),
    stderr: '',
  })
  const list = await run('ls')
  expect(list.stdout).toMatch(/^id +times +target +next +last +missed +failure\n/)
  expect(list.stdout).toMatch(/nightly +every 3600 s +queues jobs.nightly +20\S+Z +- +0\n/)
  expect((await run('pause', 'nightly')).stdout).toBe('nightly: paused\n')
  expect((await run('ls')).stdout).toMatch(/nightly .* paused +-/)
  expect((await run('resume', 'nightly')).stdout).toBe('nightly: resumed\n')
  expect((await run('trigger', 'nightly')).stdout).toMatch(/^nightly: sent, id \S+\n$/)
  expect(JSON.parse((await run('ls', '--json')).stdout)).toMatchObject({ id: 'nightly', message: { body: '{"n": 1}' } })
  expect((await run('rm', 'nightly')).stdout).toBe('nightly: removed\n')
  expect(await run('rm', 'nightly')).toMatchObject({
    code: expect.any(Number),
    stderr: expect.stringContaining('no schedule has the id'),
  })
  expect(await run('ls')).toEqual({ code: 3, stdout: '', stderr: '' })
})

test('schedules - a command without a target or with two is refused', async () => {
  const refused = await run('set', 'x', 'body', '--every', '1h')
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('allowed is one of them') })
  expect(await run('set', 'x', 'body', '--every', '1h', '--queue', 'a', '--log', 'b')).toMatchObject({ code: 2 })
  expect(await run('set', 'x', 'body', '--every', '1500ms', '--queue', 'a')).toMatchObject({ code: 2 })
})
