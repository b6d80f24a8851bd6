import { AdmissionControl } from '@signalbox/http-kit'
import { expect, test } from 'vitest'

import { bearer, manage, tokens } from './management-server.ts'
import { openMonitor } from './monitor-client.ts'

const authenticator = tokens()

test('limits - an operator over a limit is 429 with Retry-After and the setting, others are served', async () => {
  const admission = new AdmissionControl({ limits: { caller: { requestsPerSecond: 0.01 } } })
  const { url } = await manage({ authenticator, frontDoor: { admission } })
  const ask = (token: string): Promise<Response> => fetch(`${url}/api/config`, { headers: bearer(token) })
  expect((await ask('a:Admin')).status).toBe(200)
  const refused = await ask('a:Admin')
  expect([refused.status, Number(refused.headers.get('retry-after')) > 90]).toEqual([429, true])
  expect(await refused.json()).toMatchObject({
    error: true,
    error_string: expect.stringContaining('LIMITS_CALLER_REQUESTS_PER_SECOND'),
    data: { code: 'TOO_MANY_REQUESTS', limit: 'caller_rate' },
  })
  expect((await ask('b:Admin')).status).toBe(200)
})

test('limits - a monitor counts as a stream of its caller until it is closed', async () => {
  const admission = new AdmissionControl({ limits: { caller: { streams: 1 } } })
  const { url } = await manage({ authenticator, frontDoor: { admission } })
  const first = await openMonitor(url, '', bearer('a:ReadOnly'))
  if (!('socket' in first)) throw new Error('refused')
  expect(await openMonitor(url, '', bearer('a:ReadOnly'))).toMatchObject({
    status: 429,
    envelope: { data: { code: 'TOO_MANY_REQUESTS', limit: 'caller_streams' } },
  })
  const other = await openMonitor(url, '', bearer('b:ReadOnly'))
  expect('socket' in other).toBe(true)
  first.socket.terminate()
  await expect.poll(() => admission.use.streams).toBe(1)
  expect('socket' in (await openMonitor(url, '', bearer('a:ReadOnly')))).toBe(true)
  await expect.poll(() => admission.use.requests).toBe(0)
})

test('limits - bytes of bodies are counted against the operator, and released', async () => {
  const admission = new AdmissionControl({ limits: { caller: { bodyBytes: 1_000 } } })
  const { act } = await manage({ authenticator, frontDoor: { admission } })
  const send = (body: string) => act('send_queue_message', { channel: 'q', body }, bearer('a:Admin'))
  expect(await send('x'.repeat(2_000))).toMatchObject({ status: 429, data: { limit: 'caller_body_bytes' } })
  expect(await send('x')).toMatchObject({ status: 200, error: false })
  await expect.poll(() => admission.use.bodyBytes).toBe(0)
})

test('limits - a body that is too large is refused before it arrives, and its connection is closed', async () => {
  const { url } = await manage({ maxBodyBytes: 1_000 })
  const answer = await fetch(`${url}/api/actions/send_queue_message`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ channel: 'q', body: 'x'.repeat(1_000) }),
  })
  expect([answer.status, answer.headers.get('connection')]).toEqual([413, 'close'])
  expect(await answer.json()).toMatchObject({ data: { code: 'BODY_TOO_LARGE', limit: 1_000 } })
})

test.each([
  ['['.repeat(129) + ']'.repeat(129), 'nested deeper than 128 levels'],
  ['{"channel":"a","channel":"b","type":"queues"}', 'the key "channel" twice'],
])('J4 - a body that two readers could take for two things is refused before it is built: %s', async (body, reason) => {
  const { url } = await manage()
  const answer = await fetch(`${url}/api/actions/create_channel`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  expect([answer.status, await answer.json()]).toMatchObject([
    400,
    { error_string: expect.stringContaining(reason), data: { code: 'BODY_INVALID' } },
  ])
})

test('limits - while every caller is Admin, a page that reaches the listener under a foreign name is refused', async () => {
  const { url } = await manage({ frontDoor: { allowedHosts: ['operators.example'] } })
  const answer = await fetch(`${url}/api/config`)
  expect([answer.status, await answer.json()]).toMatchObject([
    403,
    { error_string: expect.stringContaining('HTTP_ALLOWED_HOSTS'), data: { code: 'ORIGIN_REFUSED' } },
  ])
})
