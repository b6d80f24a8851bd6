import { createBroker } from '@signalbox/broker-core'
import type { Broker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import Fastify from 'fastify'
import { testFolder } from '@signalbox/testkit/test-folder'
import { testServer } from '@signalbox/testkit/test-server'
import { expect, onTestFinished, test } from 'vitest'

import { ceConnector } from '../src/fastify.ts'
import { event } from './ce-server.ts'

async function openBroker(): Promise<Broker> {
  const engine = await openEmbeddedEngine({ path: testFolder() })
  onTestFinished(() => engine.close())
  return createBroker(engine).broker
}

function send(url: string): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/cloudevents+json', 'x-request-id': '7' },
    body: JSON.stringify(event({ subject: 'c' })),
  })
}

test('CE-8 - hosts: the handler runs on a bare node server, and answers 404 for other paths', async () => {
  const connector = ceConnector(await openBroker(), { path: '/events/ce' })
  const server = await testServer((request, response) => connector.handler(request, response, { 'X-Host': 'bare' }))
  onTestFinished(() => connector.close())
  const base = server.url
  const answer = await send(`${base}/events/ce/send/event`)
  expect([answer.status, answer.headers.get('x-host')]).toEqual([202, 'bare'])
  for (const path of ['/ce/send/event', '/events/ce', '/events/ce/', '/events/ce/send/nothing', '/']) {
    const missing = await send(`${base}${path}`)
    expect([missing.status, missing.headers.get('content-type'), await missing.text()], path).toEqual([
      404,
      'text/plain; charset=utf-8',
      '404 page not found\n',
    ])
  }
})

test("CE-8 - hosts: the plugin works below a prefix, and keeps headers that the host's hooks set", async () => {
  const app = Fastify({ forceCloseConnections: true })
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('access-control-allow-origin', '*').header('x-request-id', request.headers['x-request-id'] ?? '-')
    done()
  })
  await app.register(ceConnector(await openBroker(), { drainMs: 100 }).plugin, { prefix: '/v2' })
  app.post('/json', (request) => request.body)
  onTestFinished(() => app.close())
  const base = await app.listen({ port: 0, host: '127.0.0.1' })
  const answer = await send(`${base}/v2/ce/send/event`)
  expect([
    answer.status,
    answer.headers.get('access-control-allow-origin'),
    answer.headers.get('x-request-id'),
  ]).toEqual([202, '*', '7'])
  expect((await send(`${base}/ce/send/event`)).status).toBe(404)
  const stream = await fetch(`${base}/v2/ce/subscribe/events?channel=c`)
  expect([stream.status, stream.headers.get('access-control-allow-origin')]).toEqual([200, '*'])
  await stream.body?.cancel()
  const json = await fetch(`${base}/json`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '[1]',
  })
  expect(await json.json()).toEqual([1])
})

test('hosts - options out of range are refused when the connector is made', async () => {
  const broker = await openBroker()
  for (const options of [
    { path: 'ce' },
    { path: '/ce/' },
    { maxBodyBytes: 0 },
    { timeoutSeconds: 0 },
    { timeoutSeconds: 3601 },
    { maxStreams: -1 },
    { maxSseIdleSeconds: Number.NaN },
    { maxBufferedBytes: 0 },
    { trustedOrigins: ['nonsense'] },
  ]) {
    expect(() => ceConnector(broker, options), JSON.stringify(options)).toThrow(RangeError)
  }
})
