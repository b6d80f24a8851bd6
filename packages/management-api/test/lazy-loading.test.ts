import { once } from 'node:events'
import { connect } from 'node:net'

import type { Authenticator } from '@signalbox/http-kit'
import { expect, onTestFinished, test, vi } from 'vitest'

import { manage, text } from './management-server.ts'

/** The modules of the handlers are loaded when the test says so. */
const loading = vi.hoisted(() => ({
  begun: Promise.withResolvers<void>(),
  released: Promise.withResolvers<void>(),
}))

vi.mock('../src/request-handlers.ts', async (importOriginal) => {
  loading.begun.resolve()
  await loading.released.promise
  return importOriginal()
})

/** The first requests of a server, one on each connection. */
const REQUESTS = [
  request('GET', '/api/snapshot'),
  request('GET', '/v1/stats/queues'),
  request('GET', '/openapi.json'),
  request('POST', '/api/actions/receive_queue_messages', { channel: 'jobs', max_messages: 1 }),
  request('POST', '/api/actions/receive_queue_messages', {
    channel: 'empty',
    max_messages: 1,
    wait_timeout_seconds: 60,
  }),
  request('POST', '/api/actions/peek_queue_messages', { channel: 'jobs' }),
]

function request(method: string, path: string, body?: object): string {
  const json = body === undefined ? '' : JSON.stringify(body)
  const headers = ['Host: 127.0.0.1', 'Content-Type: application/json', `Content-Length: ${json.length}`]
  return `${method} ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${json}`
}

test('lazy loading - clients that disconnect while the handlers load leave a healthy server, and no message is lost', async () => {
  const unhandled: unknown[] = []
  const listener = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', listener)
  onTestFinished(() => void process.off('unhandledRejection', listener))
  const admitted = Promise.withResolvers<void>()
  let count = 0
  const authenticator: Authenticator = {
    anonymous: true,
    authenticate() {
      if (++count === REQUESTS.length) admitted.resolve()
      return { clientId: 'operator', roles: ['Admin'] }
    },
  }
  const failures: unknown[] = []
  const server = await manage({ authenticator, hooks: { failed: (error) => void failures.push(error) } })
  await server.broker.as({ clientId: 'shop' }).queues.send('jobs', { body: text('one') })

  const { port } = new URL(server.url)
  const sockets = await Promise.all(
    REQUESTS.map(async (bytes) => {
      const socket = connect(Number(port), '127.0.0.1')
      await once(socket, 'connect')
      socket.on('error', () => {}).write(bytes)
      return socket
    }),
  )
  await Promise.all([admitted.promise, loading.begun.promise])
  for (const [i, socket] of sockets.entries()) {
    if (i % 2 === 0) socket.resetAndDestroy()
    else socket.destroy()
  }
  await Promise.all(sockets.map(async (socket) => socket.closed || once(socket, 'close')))
  // Answered without the handlers, after the server has seen that the clients are gone.
  for (let i = 0; i < 3; i++) expect((await fetch(`${server.url}/metrics`)).status).toBe(200)
  loading.released.resolve()

  expect(await server.get('/api/snapshot')).toMatchObject({ status: 200, error: false })
  const received = () =>
    server.act<{ readonly messages: readonly unknown[] }>('receive_queue_messages', {
      channel: 'jobs',
      max_messages: 1,
    })
  expect((await received()).data.messages).toMatchObject([{ body: 'one' }])
  // A call of a client that is gone does not wait for messages.
  await expect
    .poll(async () => (await server.get('/api/audit')).data.items)
    .toContainEqual(expect.objectContaining({ action: 'receive_queue_messages', channel: 'empty' }))
  await server.close()
  expect(failures).toEqual([])
  expect(unhandled).toEqual([])
})
