import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:net'

import { RawConnection } from '@signalbox/testkit/raw-connection'
import { testServer } from '@signalbox/testkit/test-server'
import { describe, expect, onTestFinished, test } from 'vitest'

import type { SseEnd, SseOptions } from '../src/index.ts'
import { SseStream } from '../src/index.ts'
import { eventText, OpenStreams } from '../src/internal.ts'

/** A server that hands each response to the test. */
async function serve(onResponse: (response: ServerResponse) => void): Promise<number> {
  const server = await testServer((_request, response) => onResponse(response))
  return server.port
}

async function open(
  options: SseOptions = {},
): Promise<{ stream: SseStream; socket: Socket; until: (text: string) => Promise<string> }> {
  const opened = Promise.withResolvers<SseStream>()
  const port = await serve((response) => opened.resolve(new SseStream(response, options)))
  const connection = new RawConnection(port)
  await connection.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const stream = await opened.promise
  let seen = ''
  const until = async (text: string): Promise<string> => {
    if (!seen.includes(text)) seen += await connection.until(text)
    return seen
  }
  return { stream, socket: connection.socket, until }
}

const ended = (stream: SseStream): Promise<SseEnd> => new Promise((resolve) => stream.onEnd(resolve))

describe('SSE', () => {
  test('SSE - a comment at once, then events as they are written', async () => {
    const { stream, until } = await open({ headers: { 'X-More': 'yes' } })
    const head = await until(': open\n\n')
    expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(head).toMatch(/content-type: text\/event-stream\r\n/i)
    expect(head).toMatch(/cache-control: no-cache, no-transform\r\n/i)
    expect(head).toMatch(/x-more: yes\r\n/i)
    expect(stream.write({ event: 'message', id: '7', data: 'a\nb' })).toBe(true)
    expect(await until('data: b\n\n')).toContain('event: message\nid: 7\ndata: a\ndata: b\n\n')
  })

  test('SVC-3 - keepalive comments are sent at a fixed interval', async () => {
    const { until } = await open({ keepAliveMs: 5 })
    expect(await until(': keepalive\n\n')).toContain(': open\n\n')
  })

  test('SSE - an idle stream ends, and keepalives do not keep it', async () => {
    const { stream, until } = await open({ keepAliveMs: 2, idleMs: 30 })
    expect(await ended(stream)).toBe('idle')
    expect(stream.write({ data: 'late' })).toBe(false)
    expect(await until('0\r\n\r\n')).not.toContain('late')
  })

  test('S9 - a stream ends when its credentials do', async () => {
    const { stream, until } = await open({ endsAt: Date.now() - 1 })
    expect(await ended(stream)).toBe('expired')
    await until('0\r\n\r\n')
  })

  test('SSE - an end is polite: the last event arrives, then the end of the response', async () => {
    const { stream, until } = await open()
    stream.end({ event: 'bye', data: '1' })
    const text = await until('0\r\n\r\n')
    expect(text.indexOf('event: bye')).toBeLessThan(text.indexOf('0\r\n\r\n'))
    expect(await ended(stream)).toBe('ended')
    expect(stream.open).toBe(false)
    stream.end()
  })

  test('SSE - a reader that disconnects ends the stream', async () => {
    const { stream, socket, until } = await open()
    await until(': open')
    socket.resetAndDestroy()
    expect(await ended(stream)).toBe('disconnected')
    expect(await stream.drained()).toBe(false)
  })

  test('SSE - a slow reader pauses the producer, and draining resumes it', async () => {
    const { stream, socket, until } = await open({ maxBufferedBytes: 50_000_000 })
    await until(': open')
    socket.pause()
    const data = 'x'.repeat(100_000)
    for (let taken = true; taken;) taken = stream.write({ data })
    const drained = stream.drained()
    socket.resume()
    expect(await drained).toBe(true)
    expect(stream.open).toBe(true)
  })

  test('SSE - a reader that takes nothing does not hold on to a stream that was ended', async () => {
    const opened = Promise.withResolvers<ServerResponse>()
    const port = await serve((response) => opened.resolve(response))
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    onTestFinished(() => void socket.destroy())
    socket.pause().write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    const response = await opened.promise
    const stream = new SseStream(response, { lingerMs: 100 })
    stream.writeText('x'.repeat(32 * 1024 * 1024))
    stream.end({ data: 'last' })
    await once(response, 'close')
    expect(response.writableFinished).toBe(false)
  })

  test('SSE - the buffer for a slow reader is bounded', async () => {
    const { stream, socket, until } = await open({ maxBufferedBytes: 300_000 })
    await until(': open')
    socket.pause()
    const data = 'x'.repeat(100_000)
    for (let n = 0; n < 1000 && stream.open; n++) stream.write({ data })
    expect(await ended(stream)).toBe('slow')
  })

  test('SSE - one event larger than the buffer is still sent to a reader that is not behind', async () => {
    const { stream, until } = await open({ maxBufferedBytes: 1000 })
    await until(': open')
    stream.write({ data: `${'x'.repeat(5000)}!` })
    await until('!')
    expect(stream.open).toBe(true)
  })

  test('SSE - an event of one line ends with an empty line', () => {
    expect(eventText({ event: 'e', id: '1', data: 'a' })).toBe('event: e\nid: 1\ndata: a\n\n')
  })

  test('SSE - line ends cannot smuggle in a field', () => {
    expect(() => eventText({ event: 'a\ndata: b', data: '' })).toThrow(TypeError)
    expect(() => eventText({ id: 'a\rb', data: '' })).toThrow(TypeError)
    expect(() => eventText({ id: 'a\0', data: '' })).toThrow(TypeError)
    expect(eventText({ data: 'a\rb\r\nc\n' })).toBe('data: a\ndata: b\ndata: c\ndata: \n\n')
  })
})

describe('open streams', () => {
  test('OpenStreams - counted, limited to half of them for one caller, and ended together', async () => {
    const streams = new OpenStreams(202)
    const refused: ServerResponse[] = []
    const port = await serve((response) => {
      if (streams.hasRoomFor('caller')) streams.add(new SseStream(response), 'caller')
      else refused.push(response.writeHead(503).end())
    })
    const url = `http://127.0.0.1:${port}/`
    const open = await Promise.all(Array.from({ length: 101 }, () => fetch(url)))
    expect(streams.size).toBe(101)
    expect((await fetch(url)).status).toBe(503)
    expect(streams.hasRoomFor('another')).toBe(true)
    streams.closeAll()
    for (const stream of open) expect(await stream.text()).toBe(': open\n\n')
    expect(streams.size).toBe(0)
    expect(streams.open).toBe(false)
    expect((await fetch(url)).status).toBe(503)
    expect(refused).toHaveLength(2)
  })
})

describe('sse - text that is on the wire form', () => {
  test('it is written as it is, and a reader that takes nothing shows as blocked until it does', async () => {
    const { stream, socket, until } = await open()
    stream.writeText('data: 1\n\ndata: 2\n\n')
    await until('data: 1\n\ndata: 2\n\n')
    socket.pause()
    const large = Buffer.from(eventText({ data: 'x'.repeat(1_000_000) }))
    while (!stream.blocked || stream.bufferedBytes < 5_000_000) {
      stream.writeText(large)
      await new Promise((resolve) => setImmediate(resolve))
    }
    socket.resume()
    expect(await stream.drained()).toBe(true)
    expect([stream.blocked, stream.bufferedBytes]).toEqual([false, 0])
    stream.end()
    expect(stream.writeText('data: 3\n\n')).toBe(false)
  })

  test('a reader that takes nothing for the time of slow consumers gets an error, and its stream ends', async () => {
    const { stream, socket, until } = await open({ slowConsumerMs: 150, maxBufferedBytes: 100_000_000 })
    await until(': open')
    socket.pause()
    const large = Buffer.from(eventText({ data: 'x'.repeat(1_000_000) }))
    while (stream.bufferedBytes < 5_000_000) stream.writeText(large)
    expect(await ended(stream)).toBe('slow')
    socket.resume()
    expect((await until('0\r\n\r\n')).slice(-40)).toContain(': slow consumer\n\n')
  })

  test('a reader that takes one large event piece by piece is not a slow one', async () => {
    const { stream, socket, until } = await open({ slowConsumerMs: 2_000, maxBufferedBytes: 1_000_000 })
    await until(': open')
    const begun = socket.bytesRead
    stream.writeText(Buffer.from(eventText({ data: 'x'.repeat(24_000_000) })))
    expect(stream.bufferedBytes).toBeGreaterThan(10_000_000)
    const drained = stream.drained()
    const begin = performance.now()
    for (let part = 1; part <= 10 && stream.open; part++) {
      while (socket.bytesRead - begun < part * 2_400_000) await once(socket, 'data')
      socket.pause()
      await new Promise((resolve) => setTimeout(resolve, 220))
      socket.resume()
    }
    expect(await drained).toBe(true)
    expect(performance.now() - begin).toBeGreaterThan(2_000)
    expect([stream.open, stream.blocked, stream.bufferedBytes]).toEqual([true, false, 0])
    stream.end({ data: 'last' })
    await until('data: last\n\n')
  })

  test('a large event that is ended in the middle arrives whole', async () => {
    const { stream, socket, until } = await open({ maxBufferedBytes: 100_000 })
    await until(': open')
    socket.pause()
    stream.writeText(eventText({ data: `${'x'.repeat(9_000_000)}!` }))
    expect(stream.blocked).toBe(true)
    stream.end({ data: 'last' })
    socket.resume()
    expect((await until('0\r\n\r\n')).slice(-60)).toMatch(/x!\n\n(?:\r\n[0-9a-f]+\r\n)?data: last\n\n/)
  })

  test('data that the producer keeps for a slow reader counts as unread, like written data', async () => {
    const counted: number[] = []
    const hold = { setUnread: (bytes: number) => counted.push(bytes) > 0 && bytes < 9_000_000 }
    const { stream, socket, until } = await open({ hold, maxBufferedBytes: 100_000_000 })
    await until(': open')
    socket.pause()
    stream.writeText('x'.repeat(8_000_000))
    expect(counted.at(-1)).toBe(stream.bufferedBytes)
    stream.countWaiting(500_000)
    expect(counted.at(-1)).toBe(stream.bufferedBytes + 500_000)
    expect(stream.open).toBe(true)
    stream.countWaiting(9_000_000)
    expect(await ended(stream)).toBe('slow')
  })

  test('a reader that takes nothing for the idle time is cut off', async () => {
    const { stream, socket } = await open({ idleMs: 500 })
    socket.pause()
    const large = Buffer.alloc(1_000_000, 120)
    while (!stream.blocked || stream.bufferedBytes < 5_000_000) {
      stream.writeText(large)
      await new Promise((resolve) => setImmediate(resolve))
    }
    const gone = once(socket, 'close')
    expect(await new Promise<SseEnd>((resolve) => stream.onEnd(resolve))).toBe('idle')
    socket.resume()
    await gone
  })
})
