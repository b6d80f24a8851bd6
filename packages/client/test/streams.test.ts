import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { connect, Reject } from '../src/index.ts'
import { Gate } from './gate.ts'
import { serverForFile } from './server.ts'

const file = serverForFile()
const { client } = file

test('events - subscribers of a pattern get every event, and a group shares them', async () => {
  const sb = client()
  const all: unknown[] = []
  const shared: unknown[] = []
  const take = { group: 'billing' }
  const subscriptions = [
    sb.events('orders.*').on(({ channel, data }) => all.push([channel, data])),
    sb.events('orders.eu').on(({ data }) => shared.push(data), take),
    sb.events('orders.eu').on(({ data }) => shared.push(data), take),
  ]
  await Promise.all(subscriptions.map(({ ready }) => ready))
  for (let n = 0; n < 10; n++) await sb.events('orders.eu').publish({ n })
  await sb.events('orders.us').publish('text')
  await until(() => all.length === 11 && shared.length === 10)
  expect(all.at(0)).toEqual(['orders.eu', { n: 0 }])
  expect(all.at(-1)).toEqual(['orders.us', 'text'])
  await subscriptions[0]!.close()
  await sb.events('orders.us').publish('later')
  await sb.close()
  expect(all).toHaveLength(11)
})

test('events - an error of a handler goes to onError, and the next event arrives', async () => {
  const errors: unknown[] = []
  const seen: unknown[] = []
  const sb = client({ onError: (error) => errors.push(error) })
  const subscription = sb.events('fragile').on(({ data }) => {
    if (data === 1) throw new Error('one')
    seen.push(data)
  })
  await subscription.ready
  await sb.events('fragile').publish(1)
  await sb.events('fragile').publish(2)
  await until(() => seen.length === 1)
  expect(errors).toEqual([new Error('one')])
})

test('events - a subscription that the server refuses ends with its error', async () => {
  const errors: unknown[] = []
  const subscription = client({ onError: (error) => errors.push(error) })
    .events('_AGENTS_.>')
    .on(() => {})
  await expect(subscription.ready).rejects.toMatchObject({ code: 'CHANNEL_RESERVED', status: 400 })
  await expect(subscription.closed).rejects.toMatchObject({ code: 'CHANNEL_RESERVED' })
  expect(errors).toHaveLength(1)
})

test('events - a silent connection is made again, and the gap is reported', async () => {
  const gaps: unknown[] = []
  const subscription = client({ silence: '100ms', onError: () => {} })
    .events('quiet')
    .on(() => {}, { onGap: (gap) => gaps.push(gap) })
  await until(() => gaps.length > 0)
  expect(gaps[0]).toEqual({ reason: 'reconnected', dropped: undefined })
  await subscription.close()
})

test('stores - events are read in order from any position', async () => {
  const store = client().store<{ readonly n: number }>('history')
  for (let n = 1; n <= 5; n++) expect(await store.append({ n })).toMatchObject({ sequence: n, duplicate: false })
  const read = async (options: Parameters<typeof store.read>[0]) => {
    const seen: number[] = []
    for await (const { sequence, data } of store.read(options)) {
      expect(data).toEqual({ n: sequence })
      seen.push(sequence)
    }
    return seen
  }
  expect(await read({})).toEqual([1, 2, 3, 4, 5])
  expect(await read({ from: { sequence: 4 } })).toEqual([4, 5])
  expect(await read({ from: 'last' })).toEqual([5])
  expect(await read({ from: { ago: '1h' } })).toEqual([1, 2, 3, 4, 5])
  expect(await read({ from: { time: new Date(0) } })).toEqual([1, 2, 3, 4, 5])
  expect(await read({ from: 'new' })).toEqual([])
  expect(await read({ from: { sequence: 9 } })).toEqual([])
  // Nothing is that new: the read ends in place of waiting for an event that may never come.
  expect(await read({ from: { time: new Date(Date.now() + 3_600_000) } })).toEqual([])
  expect(await read({ from: { ago: '1h' } })).toEqual([1, 2, 3, 4, 5])
  expect(await store.lastSequence()).toBe(5)
  expect(await client().store('nothing-here').lastSequence()).toBe(0)
})

test('stores - a durable group continues at its position after all its subscribers left', async () => {
  const store = client().store('durable')
  for (let n = 1; n <= 3; n++) await store.append(n)
  const take = async (count: number, from: 'first' | 'new') => {
    const seen: unknown[] = []
    const options = { from, group: 'billing', durable: true } as const
    await using subscription = store.on(({ data }) => seen.push(data), options)
    await subscription.ready
    await until(() => seen.length === count)
    return seen
  }
  expect(await take(3, 'first')).toEqual([1, 2, 3])
  await store.append(4)
  expect(await take(1, 'new')).toEqual([4])
  expect(() => store.on(() => {}, { durable: true })).toThrow(
    expect.objectContaining({ code: 'ARGUMENT_INVALID', problems: [expect.objectContaining({ name: 'durable' })] }),
  )
})

test('stores - a reader that follows gets later events too', async () => {
  const store = client().store('followed')
  await store.append(1)
  const seen: unknown[] = []
  for await (const { data } of store.read({ follow: true })) {
    seen.push(data)
    if (data === 3) break
    await store.append(seen.length + 1)
  }
  expect(seen).toEqual([1, 2, 3])
})

test('stores - a projection continues after its checkpoint, and repeats an event whose handler failed', async () => {
  const store = client({ onError: () => {} }).store('sales')
  for (let n = 1; n <= 4; n++) await store.append(n)
  let checkpoint: number | undefined
  const handled: unknown[] = []
  const options = {
    load: () => checkpoint,
    save: (sequence: number) => {
      checkpoint = sequence
    },
  }
  let failing = true
  const first = store.project(options, ({ data }) => {
    if (data === 3 && failing) throw new Error('the database is down')
    handled.push(data)
  })
  await until(() => checkpoint === 2)
  failing = false
  await until(() => checkpoint === 4)
  expect(first.position).toBe(4)
  await first.close()
  await store.append(5)
  const second = store.project(options, ({ data }) => handled.push(data))
  await until(() => checkpoint === 5)
  await second.close()
  expect(handled).toEqual([1, 2, 3, 4, 5])
})

test('requests - a query gets the reply of its responder, and a rejection its reason', async () => {
  const sb = client({ onError: () => {} })
  const prices = sb.answer<{ readonly sku: string }>('queries', 'prices', ({ sku }) => {
    if (sku === 'secret') throw new Reject('not for sale')
    if (sku === 'broken') throw new Error('password=1234')
    return { sku, price: 9.5 }
  })
  await prices.ready
  const price = await sb.query<{ readonly price: number }>('prices', { sku: 'a' }, { timeout: '5s' })
  expect(price).toEqual({ sku: 'a', price: 9.5 })
  await expect(sb.query('prices', { sku: 'secret' })).rejects.toMatchObject({
    code: 'REQUEST_REJECTED',
    message: 'not for sale',
  })
  await expect(sb.query('prices', { sku: 'broken' })).rejects.toThrow('the responder failed')
  await expect(sb.query('no-prices', {}, { timeout: '1s' })).rejects.toMatchObject({
    code: 'NO_SUBSCRIBER',
    status: 503,
  })
})

test('requests - a command is executed or rejected, and several run at the same time', async () => {
  const sb = client()
  const gate = new Gate()
  const seen: string[] = []
  await sb.answer<string>('commands', 'doors', async (data) => {
    seen.push(data)
    if (seen.length === 2) gate.open()
    await gate.opened
  }).ready
  await Promise.all([sb.command('doors', 'left'), sb.command('doors', 'right')])
  expect(new Set(seen)).toEqual(new Set(['left', 'right']))
})

test('requests - a client that closes still sends answers in flight', async () => {
  const responder = connect(file.server.url)
  const begun = new Gate()
  await responder.answer('queries', 'slow', async (_data, { signal }) => {
    begun.open()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    return 'answered'
  }).ready
  const asked = client().query('slow', null, { timeout: '10s' })
  await begun.opened
  await responder.close()
  expect(await asked).toBe('answered')
})

test('answer - a handler knows its deadline, and its signal aborts there', async () => {
  const responder = connect(file.server.url, { onError: () => {} })
  const seen = Promise.withResolvers<{ deadline: Date | undefined; aborted: boolean }>()
  const refused = new Gate()
  await responder.answer('queries', 'deadline', async (_data, { deadline, signal }) => {
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
    seen.resolve({ deadline, aborted: signal.aborted })
    // An answer at the deadline could still be in time.
    await refused.opened
  }).ready
  const began = Date.now()
  await expect(client({ retries: 0 }).query('deadline', null, { timeout: '2s' })).rejects.toMatchObject({
    retryable: expect.any(Boolean),
  })
  const ended = Date.now()
  refused.open()
  const { deadline, aborted } = await seen.promise
  expect(aborted).toBe(true)
  expect((deadline?.getTime() ?? 0) - began).toBeGreaterThan(1_900)
  // The refusal came at the deadline, or after it.
  expect(deadline?.getTime()).toBeLessThan(ended + 500)
  await responder.close()
})
