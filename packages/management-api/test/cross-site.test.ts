import { expect, test } from 'vitest'

import { MANAGEMENT_ROUTES } from '../src/index.ts'
import { manage } from './management-server.ts'

const WRITES = MANAGEMENT_ROUTES.filter(({ listener, method }) => listener === 'management' && method !== 'GET')

/** The content types that a form, or a script without a preflight, can send. */
const SIMPLE_TYPES = [
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain',
  'text/plain; charset=utf-8',
  '',
]

test('S6, MGMT-18 - a form of another page cannot write, even from a trusted origin', async () => {
  const { url, broker, api } = await manage({ trustedOrigins: ['http://localhost:3000'] })
  await broker.as({ clientId: 'shop' }).channels.create('queues', 'q')
  expect(WRITES.length).toBeGreaterThan(10)
  for (const { path, method } of WRITES) {
    for (const type of SIMPLE_TYPES) {
      const response = await fetch(url + path, {
        method,
        headers: { origin: 'http://localhost:3000', ...(type === '' ? {} : { 'content-type': type }) },
        body: new Blob(['{"channel":"q","type":"queues","body":"x"}']),
      })
      expect([path, type, response.status]).toEqual([path, type, 415])
    }
  }
  expect(await broker.as({ clientId: 'shop' }).queues.peek('q', { maxMessages: 1 })).toEqual([])
  expect(api.audit.dropped).toBe(0)
})

test('S6, MGMT-18 - a preflight of any origin gets no permission, so no page of another origin sends JSON', async () => {
  const { url } = await manage()
  for (const origin of ['https://evil.example', 'http://localhost:3000', 'null']) {
    for (const { path } of WRITES) {
      const { headers } = await fetch(url + path, {
        method: 'OPTIONS',
        headers: {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'content-type',
        },
      })
      expect([...headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([])
    }
  }
})

test('S6, MGMT-18 - a page of an origin that is not trusted cannot write', async () => {
  const { url } = await manage()
  const { port } = new URL(url)
  for (const origin of ['https://evil.example', 'null', 'http://localhost:3000', `https://127.0.0.1:${port}`]) {
    for (const { path, method } of WRITES) {
      const headers = { origin, 'content-type': 'application/json' }
      const { status } = await fetch(url + path, { method, headers, body: '{"channel":"q"}' })
      expect([path, status]).toEqual([path, 403])
    }
  }
})
