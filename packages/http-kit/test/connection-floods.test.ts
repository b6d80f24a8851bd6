import { once } from 'node:events'
import type { RequestListener, Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { connect } from 'node:net'

import { RawConnection } from '@signalbox/testkit/raw-connection'
import { expect, onTestFinished, test } from 'vitest'

import { isFlood, paceFloods } from '../src/internal.ts'

const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** A server with this listener, until the test ends. Returns its port. */
async function listening(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** A server that answers all requests that are no flood, and counts those that Node gave it. */
async function counting(): Promise<{ port: number; requests: () => number }> {
  let requests = 0
  const port = await listening((request, response) => {
    requests++
    // Twice, as by a server and by a connector in it.
    if (!isFlood(request, response) && !isFlood(request, response)) response.end('served')
  })
  return { port, requests: () => requests }
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

interface Pacing {
  readonly server: Server
  /** Sends a request from an address; resolves with the answer. */
  readonly ask: (localAddress: string) => Promise<string>
  /** For each connection, in their order, true if it was not read at once. */
  readonly waited: readonly boolean[]
}

/** A server that paces floods, after a flood from 127.0.0.1. */
async function pacing(isTrustedProxy?: (address: string) => boolean): Promise<Pacing> {
  const server = createServer((request, response) => {
    if (!isFlood(request, response)) response.end('served')
  })
  paceFloods(server, isTrustedProxy)
  server.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const flood = await RawConnection.open(port)
  await flood.write(REQUEST.repeat(1_000))
  await flood.closed
  const waited: boolean[] = []
  server.on('connection', (socket) => setImmediate(() => waited.push(socket.isPaused())))
  const ask = async (localAddress: string): Promise<string> => {
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    socket.write(REQUEST)
    let answer = ''
    for await (const data of socket) {
      answer = String(data).slice(-6)
      break
    }
    if (answer === '') throw new Error('the connection was closed')
    return answer
  }
  return { server, ask, waited }
}

test('floods - afterwards new connections from there are read one after another', async () => {
  const { ask, waited } = await pacing()
  const answered: number[] = []
  const begin = performance.now()
  await Promise.all(
    [0, 1, 2, 3, 4].map(async (index) => {
      expect(await ask('127.0.0.1')).toBe('served')
      answered.push(index)
    }),
  )
  // Timers may be a millisecond early.
  expect(performance.now() - begin).toBeGreaterThan(90)
  expect(answered).toEqual([0, 1, 2, 3, 4])
  expect(waited).toEqual([true, true, true, true, true])
})

test('floods - a connection with 100 ahead of it is closed', async () => {
  const { ask } = await pacing()
  const asks = await Promise.allSettled(Array.from({ length: 110 }, () => ask('127.0.0.1')))
  const served = asks.filter(({ status }) => status === 'fulfilled').length
  expect(served).toBeGreaterThanOrEqual(100)
  expect(served).toBeLessThan(110)
})

test('floods - a client that resets its connection while it waits is no uncaught error', async () => {
  const { server, ask } = await pacing()
  const uncaught: unknown[] = []
  const record = (error: unknown): void => void uncaught.push(error)
  const others = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException').on('uncaughtException', record)
  onTestFinished(() => {
    process.off('uncaughtException', record)
    for (const listener of others) process.on('uncaughtException', listener)
  })
  const asks = Array.from({ length: 10 }, () => ask('127.0.0.1'))
  const closed: Promise<void>[] = []
  // Not with `events.once`, which listens for errors too.
  server.on('connection', (socket: Socket) => {
    closed.push(new Promise((resolve) => void socket.once('close', () => resolve())))
  })
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(client, 'connect')
  while (closed.length < 11) await once(server, 'connection')
  client.resetAndDestroy()
  await Promise.all(asks)
  await Promise.all(closed)
  expect(await ask('127.0.0.1')).toBe('served')
  expect(uncaught).toEqual([])
})

test('floods - connections from other addresses are read at once, and those of a trusted proxy', async () => {
  const one = await pacing()
  expect(await one.ask('127.0.0.2')).toBe('served')
  expect(one.waited).toEqual([false])

  const other = await pacing((address) => address === '127.0.0.1')
  expect(await other.ask('127.0.0.1')).toBe('served')
  expect(other.waited).toEqual([false])
})

/** A server that answers with the number of bytes of the body, and counts the chunks that Node gave it. */
async function measuring(): Promise<{ port: number; chunks: () => number }> {
  let chunks = 0
  const port = await listening((request, response) => {
    if (isFlood(request, response) || isFlood(request, response)) return
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      chunks++
      bytes += chunk.byteLength
    })
    request.on('end', () => response.end(String(bytes)))
  })
  return { port, chunks: () => chunks }
}

const CHUNKED = 'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'

function chunk(bytes: number): string {
  return `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`
}

test('small chunks - 256 of a byte are allowed, and any number of 128', async () => {
  const { port } = await measuring()
  const connection = await RawConnection.open(port)
  await connection.write(`${CHUNKED}${chunk(1).repeat(256)}0\r\n\r\n`)
  expect((await connection.answer()).text).toBe('256')
  await connection.write(`${CHUNKED}${chunk(128).repeat(5_000)}0\r\n\r\n`)
  expect((await connection.answer()).text).toBe('640000')
})

test('small chunks - more are answered with 400, the connection is closed, and its parser serves the next one', async () => {
  const { port, chunks } = await measuring()
  for (let round = 0; round < 3; round++) {
    const connection = await RawConnection.open(port)
    await connection.write(`${CHUNKED}${chunk(1).repeat(10_000)}`)
    await connection.closed
    expect(connection.received).toMatch(/^HTTP\/1\.1 400 /)
  }
  expect(chunks()).toBeLessThan(800)

  const next = await RawConnection.open(port)
  await next.write(`${CHUNKED}${chunk(7)}0\r\n\r\n`)
  expect((await next.answer()).text).toBe('7')
})

test('small chunks - an answer that was begun before them is written', async () => {
  const server = createServer((request, response) => {
    if (isFlood(request, response)) return
    request.resume()
    response.writeHead(415, { Connection: 'close' })
    response.write('early')
  })
  // Node then reads in JavaScript, as with TLS, and writes answers when all bytes were parsed.
  server.on('connection', (socket) => socket.on('data', () => {}))
  server.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const connection = await RawConnection.open((server.address() as AddressInfo).port)
  await connection.write(`${CHUNKED}${chunk(1).repeat(8_000)}`)
  await connection.closed
  expect(connection.received).toMatch(/^HTTP\/1\.1 415 [^]*early/)
})

test('small chunks - after an early answer the rest of a body is skipped, and the next body is read', async () => {
  let chunks = 0
  const port = await listening((request, response) => {
    if (isFlood(request, response)) return
    if (request.url === '/early') response.end('early')
    request.on('data', () => chunks++)
    request.on('end', () => response.end('read'))
  })
  const connection = await RawConnection.open(port)
  for (let round = 0; round < 12; round++) {
    chunks = 0
    await connection.write(`${CHUNKED.replace('/', '/early')}${chunk(1)}`)
    expect((await connection.answer()).text).toBe('early')
    await connection.write(`${chunk(1).repeat(10_000)}0\r\n\r\n${CHUNKED}${chunk(300)}0\r\n\r\n`)
    expect((await connection.answer()).text).toBe('read')
    expect(chunks).toBeLessThan(5)
  }
})
