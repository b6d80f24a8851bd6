import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { RawConnection } from '@signalbox/testkit/raw-connection'
import { expect, onTestFinished, test } from 'vitest'

import { exceedsPipeline } from '../src/internal.ts'

const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** A server that answers what {@link exceedsPipeline} lets pass, and counts all requests that it was given. */
async function counting(): Promise<{ port: number; requests: () => number }> {
  let requests = 0
  const server = createServer((request, response) => {
    requests++
    // Twice, as by a server and by a connector in it.
    if (!exceedsPipeline(request, response) && !exceedsPipeline(request, response)) response.end('served')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, requests: () => requests }
}

test('requests ahead - the first one that is too many closes the connection, and Node parses no more of them', async () => {
  const { port, requests } = await counting()
  const connection = await RawConnection.open(port)
  await connection.write(REQUEST.repeat(1_000))
  await connection.closed
  expect(requests()).toBe(18)

  const next = await RawConnection.open(port)
  await next.write(REQUEST)
  expect(await next.answer()).toMatchObject({ status: 200, text: 'served' })
})

test('requests ahead - answered ones do not count', async () => {
  const { port, requests } = await counting()
  const connection = await RawConnection.open(port)
  for (let round = 0; round < 3; round++) {
    await connection.write(REQUEST.repeat(17))
    for (let n = 0; n < 17; n++) expect((await connection.answer()).status).toBe(200)
  }
  expect(requests()).toBe(51)
})
