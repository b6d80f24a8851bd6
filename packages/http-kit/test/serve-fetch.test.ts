import { describe, expect, test } from 'vitest'

import type { HttpHandler, HttpRequest, HttpResponse } from '../src/index.ts'
import { serveFetch, SseStream } from '../src/index.ts'
import { readBody } from '../src/internal.ts'

const echo: HttpHandler = (request, response) =>
  readBody(request, 1000, (refusal, body) => {
    response.writeHead(refusal?.status ?? 200, { 'Content-Type': 'text/plain', Connection: 'close' })
    response.end(refusal?.message ?? body)
  })

function post(body: string, init: RequestInit = {}): Request {
  return new Request('http://example.com:81/a/b?c=d', { method: 'POST', body, ...init })
}

/** A request that a handler has, with its response. */
function open(init?: RequestInit): {
  request: HttpRequest
  response: HttpResponse
  answer: Promise<Response>
} {
  let given: { request: HttpRequest; response: HttpResponse } | undefined
  const answer = serveFetch((request, response) => (given = { request, response }), new Request('http://h/', init))
  if (given === undefined) throw new Error('the handler was not called')
  return { ...given, answer }
}

describe('fetch', () => {
  test('fetch - a handler reads the request and answers', async () => {
    let seen: HttpRequest | undefined
    const response = await serveFetch(
      (request, answer) => {
        seen = request
        echo(request, answer)
      },
      post('hello', { headers: { 'X-One': '1' } }),
      { clientAddress: '192.0.2.1' },
    )
    expect([response.status, await response.text()]).toEqual([200, 'hello'])
    expect(Object.fromEntries(response.headers)).toEqual({ 'content-type': 'text/plain' })
    expect(seen).toMatchObject({ method: 'POST', url: '/a/b?c=d', headers: { host: 'example.com:81', 'x-one': '1' } })
    expect(seen?.socket.remoteAddress).toBe('192.0.2.1')
  })

  test('fetch - a body over the limit is refused, as on a socket', async () => {
    const response = await serveFetch(echo, post('x'.repeat(1001)))
    expect([response.status, await response.text()]).toEqual([413, 'the body is larger than the limit of 1000 bytes'])
  })

  test.each([['text'], [Buffer.from('text')], [{ parsed: 1 }]])(
    'fetch - %j is a body that the host has read',
    async (body) => {
      const request = post('other')
      await request.text()
      const response = await serveFetch(echo, request, { body })
      expect(await response.text()).toBe(typeof body === 'string' || Buffer.isBuffer(body) ? 'text' : '{"parsed":1}')
    },
  )

  test('fetch - a body that was read and not passed on is refused with words', async () => {
    const request = post('other')
    await request.text()
    await expect(serveFetch(echo, request)).rejects.toThrow('pass it as the second argument: { body }')
  })

  test.each([[undefined], [{}], ['http://h/'], [{ url: '/', headers: {} }]])(
    'fetch - %j is no Request',
    async (value) => {
      await expect(Promise.resolve(Reflect.apply(serveFetch, undefined, [echo, value]))).rejects.toThrow(
        'takes a Request of the Fetch API',
      )
    },
  )

  test('fetch - an answer without a body, and HEAD', async () => {
    const none = open()
    none.response.writeHead(204)
    none.response.end()
    expect(await none.answer).toMatchObject({ status: 204, body: null })
    const head = open({ method: 'HEAD' })
    head.response.writeHead(200, { 'Content-Length': 4 })
    head.response.end('text')
    const response = await head.answer
    expect([response.headers.get('content-length'), await response.text()]).toEqual(['4', ''])
  })

  test('fetch - a chunk is unread until the host asks for the next one', async () => {
    const { response, answer } = open()
    response.writeHead(200)
    response.write('one')
    response.write('two')
    const reader = (await answer).body?.getReader()
    expect(response.writableLength).toBe(6)
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('one')
    expect(response.writableLength).toBe(6)
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('two')
    expect(response.writableLength).toBe(3)
    const last = reader?.read()
    await expect.poll(() => response.writableLength).toBe(0)
    response.end()
    expect(await last).toMatchObject({ done: true })
  })

  test('fetch - a stream pauses while its reader does not read, and continues when it does', async () => {
    const { response, answer } = open()
    const stream = new SseStream(response, { keepAliveMs: 0 })
    const reader = (await answer).body?.getReader()
    while (stream.write({ data: 'x'.repeat(1000) }));
    expect([stream.open, stream.blocked]).toEqual([true, true])
    const drained = stream.drained()
    let bytes = 0
    const read = async (): Promise<void> => {
      for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
        bytes += next.value.byteLength
      }
    }
    const all = read()
    expect(await drained).toBe(true)
    expect(bytes).toBeGreaterThan(16_000)
    stream.end()
    await all
  })

  test('fetch - a host that cancels the body is a client that disconnects', async () => {
    const { response, answer } = open()
    const stream = new SseStream(response, { keepAliveMs: 0 })
    const ended = new Promise((resolve) => stream.onEnd(resolve))
    await (await answer).body?.cancel()
    expect(await ended).toBe('disconnected')
    expect(response.destroyed).toBe(true)
  })

  test('fetch - a host that aborts the signal is a client that disconnects, before the answer too', async () => {
    const gone = new AbortController()
    const { response, answer } = open({ signal: gone.signal })
    const closed = new Promise<void>((resolve) => response.once('close', resolve))
    gone.abort()
    await closed
    expect(await answer).toMatchObject({ status: 499, body: null })
    const already = open({ signal: AbortSignal.abort() })
    expect(already.response.destroyed).toBe(true)
  })

  test('fetch - an answer that cannot be completed is an error for its reader', async () => {
    const { response, answer } = open()
    response.writeHead(200)
    response.write('one')
    const text = (await answer).text()
    response.destroy()
    await expect(text).rejects.toThrow('the answer was not completed')
  })
})
