import type { Authenticator } from '@signalbox/http-kit'
import { AuthenticationError } from '@signalbox/http-kit'
import { expect, test } from 'vitest'

import type { CeRequestEvent } from '../src/index.ts'
import { CE_ROUTES } from '../src/index.ts'
import { event, openCe } from './ce-server.ts'

/** `Bearer NAME` is NAME; `Bearer soon` ends shortly; a failure of the verifier itself for `Bearer broken`. */
const authenticator: Authenticator = {
  async authenticate({ headers }) {
    const name = headers.authorization?.replace('Bearer ', '')
    if (name === 'broken') throw new Error('the key server is at https://secret.example')
    if (!name) throw new AuthenticationError('no token')
    return { clientId: name, ...(name === 'soon' ? { expiresAt: Date.now() + 1_500 } : {}) }
  },
}

test('CE-20, S5 - security: without valid credentials every route is 401, and nothing happens', async () => {
  const { base, user, post } = await openCe({ authenticator })
  for (const { name, method } of CE_ROUTES) {
    const answer = await fetch(`${base}/ce/${name}?channel=c&request_id=1&receipt=1`, {
      method,
      ...(method === 'POST' ? { body: '{' } : {}),
    })
    expect(answer.status, name).toBe(401)
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="signalbox"')
    expect(await answer.json()).toEqual({
      is_error: true,
      message: 'Authentication failed',
      data: { code: 'UNAUTHENTICATED' },
    })
  }
  expect(await user.channels.list()).toEqual([])
  expect(await post('queue/send', event({ subject: 'c' }), { authorization: 'Bearer alice' })).toMatchObject({
    status: 202,
  })
  expect(await user.queues.peek('c')).toMatchObject([{ clientId: 'alice' }])
})

test('CE-20 - security: a failure of the verifier is an internal error without details', async () => {
  const failures: unknown[] = []
  const { post } = await openCe({ authenticator, hooks: { failed: (error) => failures.push(error) } })
  const answer = await post('queue/ack_all?channel=c', undefined, { authorization: 'Bearer broken' })
  expect(answer).toMatchObject({ status: 500, message: 'internal error', data: { code: 'INTERNAL' } })
  expect(answer.text).not.toContain('secret')
  expect(failures).toHaveLength(1)
})

test('CE-20 - security: a stream ends when the credentials that opened it do', async () => {
  const { subscribe, connector } = await openCe({ authenticator })
  const stream = await subscribe('events?channel=c', { authorization: 'Bearer soon' })
  expect(connector.openStreams()).toBe(1)
  await stream.ended
  expect(connector.openStreams()).toBe(0)
})

test('CE-20, S6 - security: origins that are not trusted are 403 before anything else', async () => {
  const { base } = await openCe({ authenticator, trustedOrigins: ['https://app.example'] })
  const call = (origin: string) =>
    fetch(`${base}/ce/queue/ack_all?channel=c`, { method: 'POST', headers: { origin, authorization: 'Bearer alice' } })
  expect((await call('https://app.example')).status).toBe(200)
  for (const origin of ['https://evil.example', 'http://app.example', 'null', 'http://localhost']) {
    const refused = await call(origin)
    expect(refused.status, origin).toBe(403)
    expect(await refused.json()).toEqual({
      is_error: true,
      message: 'origin not allowed; add it to CONNECTORSCE_TRUSTED_ORIGINS',
      data: { code: 'ORIGIN_REFUSED' },
    })
  }
  const auto = await openCe()
  for (const [origin, status] of [
    ['http://localhost:3000', 200],
    ['https://127.0.0.1', 200],
    ['https://evil.example', 403],
  ] as const) {
    const answer = await fetch(`${auto.base}/ce/queue/ack_all?channel=c`, { method: 'POST', headers: { origin } })
    expect(answer.status, origin).toBe(status)
  }
})

test('CE-20 - hooks: every request is reported once, with its route and how it ended', async () => {
  const events: CeRequestEvent[] = []
  const { post, subscribe, base } = await openCe({
    timeoutSeconds: 0.1,
    trustedOrigins: [],
    hooks: { requestFinished: (finished) => events.push(finished) },
  })
  await post('send/event', event({ subject: 'c' }))
  await post('send/event', event())
  await post('queue/ack?receipt=none')
  await post('send/command?channel=c', event())
  ;(await subscribe('events?channel=c')).close()
  await fetch(`${base}/ce/send/event`, { method: 'POST', headers: { origin: 'http://x' } })
  expect(events.map(({ route, outcome }) => [route, outcome])).toEqual([
    ['send/event', 'success'],
    ['send/event', 'error'],
    ['queue/ack', 'rejected'],
    ['send/command', 'error'],
    ['subscribe/events', 'success'],
    ['send/event', 'origin_refused'],
  ])
  for (const { seconds } of events) expect(seconds).toBeGreaterThan(0)
})
