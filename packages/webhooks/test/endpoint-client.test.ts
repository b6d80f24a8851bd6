import { gzipSync } from 'node:zlib'

import { OpenRequests } from '@signalbox/http-kit/internal'
import { until } from '@signalbox/testkit/until'
import { answer, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { expect, onTestFinished, test } from 'vitest'

import { EndpointClient } from '../src/delivery/endpoint-client.ts'
import { EndpointPolicy } from '../src/index.ts'
import type { EndpointRequest } from '../src/index.ts'

const POST = { method: 'POST', body: new Uint8Array([1]) } as const

function openClient(allow: readonly string[] = ['127.0.0.1']): EndpointClient {
  const client = new EndpointClient(new EndpointPolicy({ allow }))
  onTestFinished(() => client.close())
  return client
}

function send(client: EndpointClient, url: string, request: EndpointRequest, open?: OpenRequests) {
  return client.send(client.to(url), request, open)
}

test('endpoint client - the answer has the first 4 KiB of the body', async () => {
  const receiver = await openReceiver()
  receiver.reply = (response) => void response.writeHead(400, { 'x-reason': 'size' }).end('a'.repeat(5_000))
  const { status, headers, text } = await send(openClient(), receiver.url, POST)
  expect({ status, reason: headers['x-reason'], text }).toEqual({
    status: 400,
    reason: 'size',
    text: 'a'.repeat(4_096),
  })
})

test('endpoint client - an answer without an end is read up to 64 KiB, and its connection is closed', async () => {
  const receiver = await openReceiver()
  let closed = false
  receiver.reply = (response) => {
    response.once('close', () => {
      closed = true
    })
    response.writeHead(200).write('a'.repeat(70_000))
  }
  const { status, text } = await send(openClient(), receiver.url, POST)
  expect([status, text.length]).toEqual([200, 4_096])
  await until(() => closed)
})

test('endpoint client - the request asks for no compression, and a compressed answer has no text', async () => {
  const receiver = await openReceiver()
  const asked: unknown[] = []
  receiver.reply = (response, received) => {
    asked.push(received.headers['accept-encoding'])
    response.writeHead(400, { 'content-encoding': 'gzip' }).end(gzipSync('a'.repeat(1_000)))
  }
  const { status, text } = await send(openClient(), receiver.url, POST)
  expect({ status, text, asked }).toEqual({ status: 400, text: '', asked: ['identity'] })
})

test('endpoint client - an informational answer is not the answer', async () => {
  const receiver = await openReceiver()
  receiver.reply = (response, received) => {
    response.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' })
    answer(204)(response, received)
  }
  await expect(send(openClient(), receiver.url, POST)).resolves.toMatchObject({ status: 204 })
})

test('endpoint client - an aborted request rejects with the reason, and its connection is closed', async () => {
  const receiver = await openReceiver()
  let closed = false
  receiver.reply = (response) =>
    void response.once('close', () => {
      closed = true
    })
  const requests = new OpenRequests()
  const sent = send(openClient(), receiver.url, POST, requests)
  const failure = sent.then(
    () => undefined,
    (error: unknown) => error,
  )
  await until(() => receiver.received.length === 1)
  const reason = new Error('the subscription ended')
  requests.abort(reason)
  expect(await failure).toBe(reason)
  await until(() => closed)
})

test('endpoint client - a request after an answer uses its connection again', async () => {
  const receiver = await openReceiver()
  const ports = new Set<number | undefined>()
  receiver.reply = (response, received) => {
    ports.add(response.socket?.remotePort)
    answer(204)(response, received)
  }
  const client = openClient()
  for (let i = 0; i < 5; i++) await send(client, receiver.url, POST)
  expect(receiver.received).toHaveLength(5)
  expect(ports.size).toBe(1)
})

test('endpoint client - a refused address gets no connection', async () => {
  const receiver = await openReceiver()
  await expect(send(openClient([]), receiver.url, POST)).rejects.toMatchObject({
    code: 'ENDPOINT_REFUSED',
  })
  expect(receiver.received).toEqual([])
})
