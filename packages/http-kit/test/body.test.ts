import type { IncomingMessage, ServerResponse } from 'node:http'

import { RawConnection } from '@signalbox/testkit/raw-connection'
import { testServer } from '@signalbox/testkit/test-server'
import { describe, expect, test } from 'vitest'

import { errorText, jsonHeadersProblem, readBody, refuseBody } from '../src/internal.ts'

/** Echoes bodies up to `limit` bytes, refuses larger ones. */
const echo =
  (limit: number) =>
  (request: IncomingMessage, response: ServerResponse): void =>
    readBody(request, limit, (refusal, body) => {
      if (refusal) refuseBody(request, response, refusal.status, {}, errorText(undefined, -32600, refusal.message))
      else response.end(body)
    })

describe('J3 - headers', () => {
  test.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'application/json; charset="utf-8"',
    'application/json;',
  ])('J3 - content type %j is read', (type) => {
    expect(jsonHeadersProblem({ 'content-type': type })).toBeUndefined()
  })

  test.each([
    undefined,
    '',
    'text/plain',
    'application/json-patch+json',
    'application/jsonx',
    'text/json',
    'application/json; charset=latin1',
    'application/json; charset=utf-16',
    'application/x-www-form-urlencoded',
    'text/plain; application/json',
  ])('J3 - content type %j is refused with -32700', (type) => {
    const problem = jsonHeadersProblem(type === undefined ? {} : { 'content-type': type })
    expect(problem).toMatchObject({ code: -32700 })
    expect(problem?.status).toBeUndefined()
  })

  test.each(['gzip', 'br', 'identity', ''])('J3 - content encoding %j is refused with 415 and -32600', (encoding) => {
    expect(jsonHeadersProblem({ 'content-type': 'application/json', 'content-encoding': encoding })).toMatchObject({
      code: -32600,
      status: 415,
    })
  })
})

describe('J3 - bodies', () => {
  test('J3 - a body of the limit is read, one byte more is 413 with -32600', async () => {
    const { port } = await testServer(echo(1000))
    const url = `http://127.0.0.1:${port}/`
    const exact = await fetch(url, { method: 'POST', body: 'x'.repeat(1000) })
    expect(await exact.text()).toBe('x'.repeat(1000))
    const over = await fetch(url, { method: 'POST', body: 'x'.repeat(1001) })
    expect(over.status).toBe(413)
    expect(await over.json()).toMatchObject({ id: null, error: { code: -32600 } })
    const empty = await fetch(url, { method: 'POST' })
    expect(await empty.text()).toBe('')
  })

  test('J3 - a chunked body over the limit is refused, with any declared length', async () => {
    const { port } = await testServer(echo(100_000))
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(new Uint8Array(60_000))
        if (++sent === 4) controller.close()
      },
    })
    let sent = 0
    const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body, duplex: 'half' })
    expect(response.status).toBe(413)
    expect(Number(response.headers.get('content-length'))).toBe((await response.text()).length)
  })

  test('J3 - a client that sends far more than the limit still reads the refusal, and is then disconnected', async () => {
    const { port } = await testServer(echo(100))
    const connection = new RawConnection(port)
    connection.post('/', 'x'.repeat(3_000_000))
    await connection.closed
    expect(connection.received).toMatch(/^HTTP\/1\.1 413 /)
    expect(connection.received).toMatch(/connection: close/i)
    expect(connection.received).toContain('"code":-32600')
  })

  test('bodies - a refused body of any length that does not arrive keeps no connection', async () => {
    const { port } = await testServer(echo(100))
    const answers = ['Content-Length: 1000', 'Content-Length: 3000000', 'Transfer-Encoding: chunked'].map(
      async (length) => {
        const connection = new RawConnection(port)
        await connection.write(`POST / HTTP/1.1\r\nHost: x\r\n${length}\r\n\r\n`)
        if (length.startsWith('Transfer')) await connection.write(`80\r\n${'x'.repeat(128)}\r\n`)
        await connection.closed
        return connection.received
      },
    )
    for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1\.1 413 /)
  })

  test('bodies - a connection stays open after a refused body that arrives', async () => {
    const { port } = await testServer(echo(100))
    const connection = new RawConnection(port)
    await connection.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n')
    expect((await connection.answer()).status).toBe(413)
    await connection.write('x'.repeat(1000))
    connection.post('/', 'ok')
    expect(await connection.until('ok')).toMatch(/^HTTP\/1\.1 200 /)
  })

  test('bodies - a client that disconnects in the middle gets no answer', async () => {
    let called = false
    const closed = new Promise<void>((resolve) => {
      void testServer((request) => {
        readBody(request, 1000, () => (called = true))
        request.on('error', () => {})
        request.once('close', resolve)
      }).then(({ port }) => {
        const { socket } = new RawConnection(port)
        socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\nhalf', () => socket.destroy())
      })
    })
    await closed
    expect(called).toBe(false)
  })
})

/** Reads the body as a host does, and keeps `kept` in `request.body`. */
async function readBefore(kept: unknown, sent = 'ignored'): Promise<string> {
  const { port } = await testServer((request, response) => {
    request.resume()
    request.once('end', () => {
      Object.assign(request, { body: kept })
      try {
        echo(100)(request, response)
      } catch (error) {
        response.end(String(error))
      }
    })
  })
  const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: sent })
  return answer.text()
}

describe('bodies that the host has read', () => {
  test.each([
    ['text', 'a'],
    ['a buffer', Buffer.from('a')],
    ['bytes', new Uint8Array([97])],
    ['an array buffer', new Uint8Array([97]).buffer],
  ])('body - %s is taken from request.body', async (_kind, kept) => {
    expect(await readBefore(kept)).toBe('a')
  })

  test('body - parsed JSON is written again', async () => {
    expect(await readBefore({ a: [1, null] })).toBe('{"a":[1,null]}')
  })

  test('body - the limit applies, and the depth', async () => {
    expect(await readBefore('x'.repeat(101))).toContain('larger than the limit of 100 bytes')
    let deep: unknown = 1
    for (let depth = 0; depth < 200_000; depth++) deep = [deep]
    expect(await readBefore(deep)).toMatch(/larger than the limit|nested too deeply/)
  })

  test('body - one that was read and not kept is refused with words, and an empty one is empty', async () => {
    expect(await readBefore(undefined)).toContain('request.body is undefined')
    expect(await readBefore(undefined, '')).toBe('')
  })
})
