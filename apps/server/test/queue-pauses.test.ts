import { until } from '@signalbox/testkit/until'
import { expect, test, vi } from 'vitest'

import { serve } from './support/server.ts'

interface Answer {
  readonly error?: boolean
  readonly data: {
    readonly items: readonly Readonly<Record<string, string>>[]
    readonly messages: readonly unknown[]
  }
}

async function json(response: Response): Promise<Answer> {
  return (await response.json()) as Answer
}

async function post(url: string, body: unknown): Promise<Answer> {
  const headers = { 'content-type': 'application/json' }
  return json(await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) }))
}

const end = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()

/** A server, and functions that call its listeners. */
async function openServer() {
  const { api, broker, http } = await serve()
  return {
    broker,
    act: (action: string, args: unknown) => post(`${api.url}/api/actions/${action}`, args),
    read: async (path: string) => json(await fetch(`${api.url}${path}`)),
    ce: async (route: string) => json(await fetch(`${http.url}/ce/${route}`, { method: 'POST' })),
    metrics: async () => (await fetch(`${api.url}/metrics`)).text(),
  }
}

test('pauses - an operator pauses a queue, sees that, and resumes it for the receivers that wait', async () => {
  const { act, broker, ce, metrics, read } = await openServer()
  await act('send_queue_message', { channel: 'jobs', body: 'work' })
  expect(await act('pause_queue', { channel: 'jobs', until: null, reason: 'an incident' })).toMatchObject({
    error: false,
    data: { channel: 'jobs', paused_until: '9999-12-31T23:59:59.000Z' },
  })
  const receiving = ce('queue/receive?channel=jobs&wait_timeout=30')
  await until(async () => (await metrics()).includes('broker_gate_waits_total{reason="paused"} 1\n'))
  expect(await metrics()).toContain('broker_queues_paused 1\n')
  expect((await read('/api/channels?name=jobs')).data.items).toMatchObject([
    { name: 'jobs', paused_until: '9999-12-31T23:59:59.000Z', depth: 1 },
  ])
  expect((await read('/api/channel_settings?type=queues&channel=jobs')).data).toMatchObject({
    effective: { consumers: { paused_until: '9999-12-31T23:59:59.000Z' } },
    pause: { paused_until: '9999-12-31T23:59:59.000Z', reason: 'an incident', changed_by: expect.any(String) },
  })
  // Operators still receive.
  await act('send_queue_message', { channel: 'jobs', body: 'more work' })
  expect(await act('receive_queue_messages', { channel: 'jobs', max_messages: 1 })).toMatchObject({
    data: { messages: [{ body: 'work' }] },
  })
  expect(await act('resume_queue', { channel: 'jobs' })).toMatchObject({ data: { resumed: true, paused_until: null } })
  expect((await receiving).data.messages).toHaveLength(1)
  expect(await act('resume_queue', { channel: 'jobs' })).toMatchObject({ data: { resumed: false } })
  expect(broker.pausedUntil('jobs')).toBeUndefined()
  expect(await metrics()).toContain('broker_queues_paused 0\n')
  // An action does not wait for its entry.
  await vi.waitFor(async () => {
    const audited = (await read('/api/audit')).data.items.map(({ action, channel }) => [action, channel])
    expect(audited).toContainEqual(['pause_queue', 'jobs'])
    expect(audited).toContainEqual(['resume_queue', 'jobs'])
  }, 10_000)
})

test('pauses - the later end counts: of the settings, or of a pause', async () => {
  const { act, read } = await openServer()
  await act('create_channel', { channel: 'jobs', type: 'queues' })
  const bySettings = end(600)
  await act('set_channel_settings', { type: 'queues', match: 'jobs', consumers: { paused_until: bySettings } })
  await act('pause_queue', { channel: 'jobs', seconds: 60 })
  expect((await read('/api/channels?name=jobs')).data.items[0]?.['paused_until']).toBe(bySettings)
  expect(await act('resume_queue', { channel: 'jobs' })).toMatchObject({
    data: { resumed: true, paused_until: bySettings },
  })
  const byPause = end(1_200)
  await act('pause_queue', { channel: 'jobs', until: byPause })
  expect((await read('/api/channel_settings?type=queues&channel=jobs')).data).toMatchObject({
    effective: { consumers: { paused_until: byPause, max_in_flight: 0 } },
    origins: { consumers: { match: 'jobs', source: 'api' } },
    pause: { paused_until: byPause, reason: '' },
  })
})

test('pauses - invalid arguments are refused, and pause nothing', async () => {
  const { act, broker } = await openServer()
  await act('create_channel', { channel: 'jobs', type: 'queues' })
  for (const [args, argument] of [
    [{}, 'until'],
    [{ until: null, seconds: 5 }, 'until'],
    [{ until: '2020-01-01T00:00:00Z' }, 'until'],
    [{ until: 'tomorrow' }, 'until'],
    [{ seconds: 0 }, 'seconds'],
  ] as const) {
    const answer = await act('pause_queue', { channel: 'jobs', ...args })
    expect(answer).toMatchObject({ error: true, data: { code: 'ARGUMENT_INVALID' } })
    expect(JSON.stringify(answer.data)).toContain(`"${argument}"`)
  }
  expect(await act('pause_queue', { channel: 'job', seconds: 5 })).toMatchObject({
    error: true,
    data: { code: 'CHANNEL_NOT_FOUND' },
  })
  expect(await act('pause_queue', { channel: '_AGENTS_.x', seconds: 5 })).toMatchObject({ error: true })
  expect(broker.pauses.active).toBe(false)
})
