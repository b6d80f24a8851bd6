import { expect, onTestFinished, test } from 'vitest'

import type { ConnectOptions, Signalbox } from '../src/index.ts'
import { Gate } from './gate.ts'
import { serverForFile, TestServer } from './server.ts'

const file = serverForFile()

interface Recorded {
  readonly sb: Signalbox
  /** The data of the messages of each request. */
  readonly requests: (readonly unknown[])[]
  /** Holds every request back until it is opened. */
  gate: Gate | undefined
}

/** Connects with a `fetch` that records the sends. */
function recorded(options: ConnectOptions = {}): Recorded {
  const requests: (readonly unknown[])[] = []
  const state: { gate: Gate | undefined } = { gate: undefined }
  const sb = file.client({
    ...options,
    fetch: async (url, init) => {
      const events: unknown = /send/.test(url) ? JSON.parse(typeof init.body === 'string' ? init.body : '[]') : []
      const list: readonly { readonly data?: unknown }[] = Array.isArray(events) ? events : [events]
      if (list.length > 0) requests.push(list.map(({ data }) => data))
      await state.gate?.opened
      init.signal?.throwIfAborted()
      return fetch(url, init)
    },
  })
  return Object.assign(state, { sb, requests })
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

test('batches - sends of the same tick share a request, in their order, and each gets its own result', async () => {
  const { sb, requests } = recorded()
  for (const channel of [sb.queue<number>('together'), sb.store<number>('together')]) {
    const send = 'send' in channel ? channel.send.bind(channel) : channel.append.bind(channel)
    const stored = await Promise.all(upTo(70).map((n) => send(n, { id: `m-${n}` })))
    expect(stored).toEqual(upTo(70).map((n) => ({ id: `m-${n}`, sequence: n + 1, duplicate: false })))
    expect(requests.splice(0)).toEqual([upTo(64), [64, 65, 66, 67, 68, 69]])
    const [again, added] = await Promise.all([send(0, { id: 'm-3' }), send(0, { id: 'new' })])
    expect([again, added]).toEqual([
      { id: 'm-3', sequence: 4, duplicate: true },
      { id: 'new', sequence: 71, duplicate: false },
    ])
    requests.splice(0)
  }
})

test('batches - a single send is sent at once, and later ones wait at most for the next tick of the timer', async () => {
  const state = recorded()
  const { sb, requests } = state
  state.gate = new Gate()
  const queue = sb.queue<number>('gathered')
  const first = queue.send(1)
  for (let n = 0; n < 10; n++) await Promise.resolve()
  expect(requests).toEqual([[1]])
  const later = [queue.send(2), queue.send(3)]
  await expect.poll(() => requests).toEqual([[1], [2, 3]])
  state.gate.open()
  await Promise.all([first, ...later])
})

test('batches - messages with other settings, and large ones, are sent apart', async () => {
  const { sb, requests } = recorded()
  const queue = sb.queue<string>('apart')
  await Promise.all([queue.send('a'), queue.send('b', { delay: '5s' }), queue.send('c'), sb.queue('apart.2').send('d')])
  expect(requests.splice(0)).toEqual([['a', 'c'], ['b'], ['d']])
  const large = 'x'.repeat(100_000)
  await Promise.all([queue.send(large), queue.send(large), queue.send(large)])
  expect(requests.map((events) => events.length)).toEqual([2, 1])
})

test('batches - a client without them sends each message alone', async () => {
  const { sb, requests } = recorded({ batch: false })
  await Promise.all([1, 2, 3].map((n) => sb.queue('alone').send(n)))
  expect(requests).toEqual([[1], [2], [3]])
})

/** Sends three messages together, of which the server refuses one. */
function sendMixed(sb: Signalbox, channel: string) {
  const queue = sb.queue(channel)
  return Promise.allSettled([queue.send('good'), queue.send('bad', { id: 'half \ud800' }), queue.send('fine')])
}

test('batches - a refused message fails alone, as it would without a batch', async () => {
  const { sb, requests } = recorded()
  const [good, bad, fine] = await sendMixed(sb, 'mixed')
  expect([good, fine]).toMatchObject([{ value: { duplicate: false } }, { value: { duplicate: false } }])
  expect(requests).toEqual([['good', 'bad', 'fine'], ['good'], ['bad'], ['fine']])
  const [, alone] = await sendMixed(file.client({ batch: false }), 'mixed.alone')
  expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'EVENT_INVALID', status: 400 } })
  expect(bad).toEqual(alone)
})

test('batches - a queue that becomes full refuses the messages that it cannot store', async () => {
  const server = await TestServer.start({ QUEUE_MAX_MESSAGES: '3' })
  onTestFinished(() => server[Symbol.asyncDispose]())
  const { connect } = await import('../src/index.ts')
  await using sb = connect(server.url)
  const results = await Promise.allSettled(upTo(5).map((n) => sb.queue('small').send(n)))
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
  expect(results.filter(({ status }) => status === 'rejected')).toMatchObject(
    Array.from({ length: 2 }, () => ({ reason: { code: 'QUEUE_FULL', status: 429 } })),
  )
})

test('batches - a batch whose answer is lost is repeated, and each message is stored once', async () => {
  let attempts = 0
  const sb = file.client({
    fetch: async (url, init) => {
      const response = await fetch(url, init)
      if (url.includes('send') && ++attempts === 1) {
        await response.text()
        throw new TypeError('the connection broke')
      }
      return response
    },
  })
  const queue = sb.queue<number>('lost')
  const stored = await Promise.all(upTo(5).map((n) => queue.send(n)))
  expect(attempts).toBe(2)
  expect(stored.map(({ sequence, duplicate }) => [sequence, duplicate])).toEqual(upTo(5).map((n) => [n + 1, true]))
  expect((await queue.peek({ max: 10 })).map(({ data }) => data)).toEqual(upTo(5))
})

test('batches - an aborted send fails at once; its request goes on for the others, and ends without any', async () => {
  const state = recorded()
  const { sb, requests } = state
  const queue = sb.queue<number>('aborted')
  state.gate = new Gate()
  const [early, late, other] = [new AbortController(), new AbortController(), new AbortController()]
  const first = queue.send(0)
  await expect.poll(() => requests).toHaveLength(1)
  const waits = queue.send(1, { signal: early.signal })
  const sent = queue.send(2, { signal: late.signal })
  const kept = queue.send(3, { signal: other.signal })
  await Promise.resolve()
  early.abort(new Error('early'))
  await expect(waits).rejects.toThrow('early')
  await expect.poll(() => requests).toEqual([[0], [2, 3]])
  late.abort(new Error('late'))
  await expect(sent).rejects.toThrow('late')
  state.gate.open()
  expect(await first).toMatchObject({ sequence: 1 })
  expect(await kept).toMatchObject({ duplicate: false })

  state.gate = new Gate()
  const both = [queue.send(4, { signal: late.signal }), queue.send(5, { signal: other.signal })]
  await expect(both[0]).rejects.toThrow('late')
  other.abort(new Error('other'))
  await expect(both[1]).rejects.toThrow('other')
  state.gate.open()
  expect((await queue.peek({ max: 10 })).map(({ data }) => data)).not.toContain(5)
})

test('batches - closing the client ends the sends that are under way', async () => {
  const state = recorded()
  state.gate = new Gate()
  const queue = state.sb.queue<number>('closed')
  const sends = Promise.allSettled([queue.send(1), queue.send(2)])
  await expect.poll(() => state.requests).toHaveLength(1)
  await state.sb.close()
  state.gate.open()
  const closed = { status: 'rejected', reason: { code: 'CLOSED' } }
  expect(await sends).toMatchObject([closed, closed])
  await expect(queue.send(3)).rejects.toMatchObject({ code: 'CLOSED' })
})
