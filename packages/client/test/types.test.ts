import { expect, expectTypeOf, onTestFinished, test } from 'vitest'
import { z } from 'zod'

import type { Queue, Signalbox, StoredEvent } from '../src/index.ts'
import { connect, SignalboxError } from '../src/index.ts'
import { TestServer } from './server.ts'

const JOB = z.object({ image: z.number(), tries: z.string().transform(Number).default(1) })

async function serve(): Promise<Signalbox> {
  const server = await TestServer.start()
  const sb = connect(server.url)
  onTestFinished(async () => {
    await sb.close()
    await server[Symbol.asyncDispose]()
  })
  return sb
}

test('types - a schema gives the types of a channel, and checks the data on both sides', async () => {
  const sb = await serve()
  const queue = sb.queue('jobs', { schema: JOB })
  expectTypeOf<Parameters<typeof queue.send>[0]>().toEqualTypeOf<{ image: number; tries?: string | undefined }>()
  await queue.send({ image: 7, tries: '2' })
  // @ts-expect-error -- the schema wants a number
  const wrong = queue.send({ image: 'seven' })
  await expect(wrong).rejects.toMatchObject({ code: 'DATA_INVALID', problems: [{ name: 'image' }] })
  for await (const message of queue.receive()) {
    expectTypeOf(message.data).toEqualTypeOf<{ image: number; tries: number }>()
    expect(message.data).toEqual({ image: 7, tries: 2 })
    await message.ack()
  }
})

test('types - received data that does not match the schema fails as a handler does', async () => {
  const sb = await serve()
  await sb.queue('jobs').send({ image: 'seven' }, { maxReceives: 1, deadLetter: 'jobs.dead' })
  const errors: unknown[] = []
  const pool = sb.queue('jobs', { schema: JOB }).work({ onError: (error) => errors.push(error) }, ({ image }) => {
    expectTypeOf(image).toEqualTypeOf<number>()
    expect.unreachable()
  })
  await expect.poll(() => sb.queue('jobs.dead').peek()).toMatchObject([{ data: { image: 'seven' } }])
  await pool.drain()
  expect(errors).toMatchObject([{ code: 'DATA_INVALID', problems: [{ name: 'image' }] }])
})

test('types - the schema of a query describes its reply', async () => {
  const sb = await serve()
  await sb.answer('queries', 'price', ({ sku }) => (sku === 'a' ? { price: 1 } : 'none'), {
    schema: z.object({ sku: z.string() }),
  }).ready
  const schema = z.object({ price: z.number() })
  const reply = await sb.query('price', { sku: 'a' }, { schema })
  expectTypeOf(reply).toEqualTypeOf<{ price: number }>()
  expect(reply).toEqual({ price: 1 })
  await expect(sb.query('price', { sku: 'b' }, { schema })).rejects.toMatchObject({ code: 'DATA_INVALID' })
})

test('types - without a schema the caller names the type, and it is unknown otherwise', () => {
  const sb = connect('http://127.0.0.1:9090')
  expectTypeOf(sb.store<{ n: number }>('s').read()).toEqualTypeOf<
    AsyncGenerator<StoredEvent<{ n: number }>, void, void>
  >()
  expectTypeOf(sb.queue('q')).toEqualTypeOf<Queue>()
  // Not called: the server is none of the test's.
  expectTypeOf(() => sb.query<number>('q', null)).returns.resolves.toEqualTypeOf<number>()
  expectTypeOf(() => sb.query('q', null)).returns.resolves.toEqualTypeOf<unknown>()
})

test.each(['soon', '5', '-1s', -1, Number.NaN, '5 s'])(
  'durations - %s is refused with the allowed forms',
  async (delay) => {
    const sending = connect('http://127.0.0.1:9')
      .queue('q')
      .send(1, { delay: delay as number })
    await expect(sending).rejects.toThrow(/^delay is .*; it must be milliseconds as a number .* "5s"/)
  },
)

test.each(['localhost:9090', 'ftp://x', 'http://x/?a=1', ''])('connect - the URL %j is refused', (url) => {
  expect(() => connect(url)).toThrow(SignalboxError)
})

test('connect - the token is asked for before each request', async () => {
  const authorizations: (string | null)[] = []
  let tokens = 0
  const sb = connect('http://127.0.0.1:9/prefix/', {
    token: () => Promise.resolve(`token-${++tokens}`),
    fetch: (url, { headers }) => {
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:9\/prefix\/ce\/queue\/receive\?channel=q&/)
      authorizations.push(new Headers(headers).get('authorization'))
      return Promise.resolve(Response.json({ is_error: false, message: '', data: { messages: [] } }))
    },
  })
  await sb.queue('q').peek()
  await sb.queue('q').peek()
  expect(authorizations).toEqual(['Bearer token-1', 'Bearer token-2'])
})

test('connect - a page that is no Signalbox server is an error that says so', async () => {
  const sb = connect('http://127.0.0.1:9', {
    retries: 0,
    fetch: () => Promise.resolve(new Response('<html>hello</html>')),
  })
  await expect(sb.queue('q').peek()).rejects.toMatchObject({ code: 'RESPONSE_INVALID', status: 200 })
  await expect(sb.queue('q').send(1)).rejects.toMatchObject({ code: 'RESPONSE_INVALID' })
  await expect(sb.agents('a').send('hi')).rejects.toMatchObject({ code: 'RESPONSE_INVALID' })
})
