import * as fc from 'fast-check'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { cases } from '@signalbox/testkit/property-cases'
import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import { event, openCe } from './ce-server.ts'

const TEXT = { body: Buffer.from('hello') }

test('CE-15 - events: a message that is no CloudEvent is delivered as one, under another event name', async () => {
  const { subscribe, user, post } = await openCe()
  const stream = await subscribe('events?channel=orders.*')
  expect(stream.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
  })
  const before = Date.now()
  const { id } = await user.events.publish('orders.ü #1', {
    ...TEXT,
    metadata: 'meta',
    tags: { priority: 'high', ce_id: '1' },
  })
  const frame = await stream.next()
  expect(frame).toMatchObject({ event: 'message', id: undefined })
  const { time, ...rest } = JSON.parse(frame.data)
  expect(rest).toEqual({
    specversion: '1.0',
    id,
    source: '/signalbox/events/orders.%C3%BC%20%231',
    type: 'signalbox.message',
    subject: 'orders.ü #1',
    brokermetadata: 'meta',
    brokertags: '{"priority":"high","ce_id":"1"}',
    datacontenttype: 'text/plain',
    data: 'hello',
  })
  expect(Date.parse(time)).toBeGreaterThanOrEqual(before)
  await user.events.publish('orders.1', { body: Buffer.from('{\n "n": 12345678901234567890\n}') })
  expect((await stream.next()).data).toContain('"data":{  "n": 12345678901234567890 }')
  await post('send/event', event({ subject: 'orders.1' }))
  expect((await stream.next()).event).toBe('cloudevent')
})

test('CE-15 - events: forged tags have no effect', async () => {
  const { subscribe, user } = await openCe()
  const stream = await subscribe('events?channel=c')
  const tags = {
    ce_specversion: '1.0',
    ce_id: 'line\nend"',
    ce_source: '/x',
    ce_type: 't',
    ce_count: '1,"x":2',
    ce_flag: 'maybe',
    'ce_bad name': 'x',
    'ce_:forms': 'count=integer,flag=boolean,data=text,nothing=integer,data',
  }
  await user.events.publish('c', { body: new Uint8Array([0xff]), tags })
  expect(await stream.nextJson()).toEqual({
    specversion: '1.0',
    id: 'line\nend"',
    source: '/x',
    type: 't',
    count: '1,"x":2',
    flag: 'maybe',
    brokertags: '{"ce_bad name":"x"}',
    data_base64: '/w==',
  })
})

test('CE-13 - events: subscribers of a group share events, all others get every event', async () => {
  const { subscribe, user } = await openCe()
  const shared = [await subscribe('events?channel=c&group=g'), await subscribe('events?channel=c&group=g')]
  const other = await subscribe('events?channel=c&group=h&client_id=other')
  const all = await subscribe('events?channel=c')
  for (let i = 0; i < 20; i++) await user.events.publish('c', { body: Buffer.from(`${i}`) })
  const numbers = async (stream: typeof all, count: number) => {
    await until(() => stream.waiting.length >= count)
    return stream.waiting.map(({ data }) => JSON.parse(data).data as number)
  }
  const everything = Array.from({ length: 20 }, (_, i) => i)
  expect(await numbers(all, 20)).toEqual(everything)
  expect(await numbers(other, 20)).toEqual(everything)
  const parts = [await numbers(shared[0]!, 10), await numbers(shared[1]!, 10)]
  expect(parts.flat().sort((a, b) => a - b)).toEqual(everything)
})

test('CE-13, M8 - events: wildcards never show the channels of the broker', async () => {
  const { subscribe, system, user, base } = await openCe()
  const streams = await Promise.all(
    ['>', '*.>', '*.*', '*.agents/x', '*.discovery', '_AGENTS_>', '_AGENTS_*'].map((pattern) =>
      subscribe(`events?channel=${encodeURIComponent(pattern)}`),
    ),
  )
  for (const channel of ['_AGENTS_.discovery', '_AGENTS_.agents/x', '_AGENTS_.a.b']) {
    await system.events.publish(channel, TEXT)
  }
  await user.events.publish('_AGENTS_.x'.slice(1), TEXT)
  await user.events.publish('last.one', TEXT)
  for (const [i, stream] of streams.slice(0, 3).entries()) {
    await until(() => stream.waiting.some(({ data }) => data.includes('last.one')))
    expect(stream.waiting.length, `${i}`).toBe(2)
  }
  expect(streams.slice(3).flatMap(({ waiting }) => waiting)).toEqual([])
  for (const pattern of ['_AGENTS_.>', '_AGENTS_.*', '_AGENTS_.discovery']) {
    const refused = await fetch(`${base}/ce/subscribe/events?channel=${encodeURIComponent(pattern)}`)
    expect([refused.status, await refused.json()]).toMatchObject([400, { message: 'reserved channel name' }])
  }
})

/** What a pattern means, in five lines. */
function matches(pattern: readonly string[], channel: readonly string[]): boolean {
  const [first, ...others] = pattern
  if (first === undefined || channel.length === 0) return first === undefined && channel.length === 0
  if (first === '>') return others.length === 0
  return (first === '*' || first === channel[0]) && matches(others, channel.slice(1))
}

test('CE-13 - events: random patterns match random channels as the reference says', { timeout: 60_000 }, async () => {
  const { post, subscribe, system } = await openCe()
  const token = fc.constantFrom<string[]>('a', 'b', '_AGENTS_', 'ü x', 'a*', '>>')
  const channels = fc.array(fc.array(token, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 })
  const pattern = fc
    .tuple(
      fc.array(fc.oneof(token, fc.constant<string>('*')), { maxLength: 3 }),
      fc.constantFrom<string[][]>([], ['>'], ['*'], ['a']),
    )
    .map(([head, tail]): string[] => head.concat(tail))
    .filter((tokens) => tokens.length > 0 && !tokens.join('.').startsWith('_AGENTS_.'))
  await fc.assert(
    fc.asyncProperty(channels, fc.array(pattern, { minLength: 1, maxLength: 4 }), async (names, patterns) => {
      const streams = await Promise.all(
        patterns.map((tokens) => subscribe(`events?channel=${encodeURIComponent(tokens.join('.'))}`)),
      )
      const done = await subscribe('events?channel=end')
      for (const tokens of names) {
        const channel = tokens.join('.')
        if (channel.startsWith('_AGENTS_.')) await system.events.publish(channel, TEXT)
        else await post(`send/event?channel=${encodeURIComponent(channel)}`, event({ id: channel }))
      }
      await post('send/event?channel=end', event())
      await done.next()
      for (const [i, tokens] of patterns.entries()) {
        const expected = names
          .filter((name) => !name.join('.').startsWith('_AGENTS_.') && matches(tokens, name))
          .map((name) => name.join('.'))
        const got = () =>
          streams[i]!.waiting.map(({ data }) => JSON.parse(data).id as string).filter((id) => id !== '1')
        await expect.poll(got, { message: tokens.join('.') }).toEqual(expected)
      }
      for (const stream of [...streams, done]) stream.close()
    }),
    { numRuns: cases(40), seed: 3 },
  )
})

test('CE-15 - streams: a stream starts with a comment, sends keepalives and ends after the idle time', async () => {
  const { subscribe, user, connector } = await openCe({ keepAliveMs: 30, maxSseIdleSeconds: 1 })
  const stream = await subscribe('events?channel=c')
  await until(() => stream.comments.length >= 2)
  expect(stream.comments.slice(0, 2)).toEqual(['open', 'keepalive'])
  for (let i = 0; i < 12; i++) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    await user.events.publish('c', TEXT)
    await stream.next()
  }
  await stream.ended
  expect(connector.openStreams()).toBe(0)
})

test('CE-16 - streams: over the limit 429, and a place is free again when one is closed', async () => {
  const { subscribe, connector, base } = await openCe({ maxStreams: 3 })
  const opened = await Promise.allSettled(
    Array.from({ length: 8 }, (_, i) => subscribe(`${i % 2 ? 'events' : 'commands'}?channel=c`)),
  )
  const streams = opened.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  expect(streams).toHaveLength(3)
  const refused = await fetch(`${base}/ce/subscribe/queries?channel=c`)
  expect(refused.status).toBe(429)
  expect(await refused.json()).toEqual({
    is_error: true,
    message: 'all 3 subscriptions are open; close one, or try again later',
    data: { code: 'STREAM_LIMIT', limit: 3 },
  })
  streams[0]!.close()
  await until(() => connector.openStreams() === 2)
  await subscribe('queries?channel=c')
})

/** Timers that would keep the process alive. */
function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}

test('CE-18 - streams: a client that disconnects leaves no subscription, timer or connection', async () => {
  const { subscribe, connector, user, connections } = await openCe()
  const before = timers()
  const routes = [
    'events?channel=c',
    'events-store?channel=c',
    'commands?channel=c',
    'queries?channel=c',
    'events?channel=>',
  ]
  for (let round = 0; round < 3; round++) {
    const streams = await Promise.all(
      routes.flatMap((route) => [subscribe(route), subscribe(`${route}&group=g&client_id=me`)]),
    )
    expect(connector.openStreams()).toBe(10)
    expect(connector.subscriptions().filter(({ clientId, group }) => clientId === 'me' && group === 'g')).toHaveLength(
      5,
    )
    expect(connector.subscriptions()[0]).toMatchObject({ principal: 'anonymous', since: expect.any(Number) })
    for (const stream of streams) stream.close()
    await until(async () => connector.openStreams() === 0 && (await connections()) === 0)
    for (const type of ['events', 'events_store', 'commands', 'queries'] as const) {
      await until(
        async () => ((await user.channels.list({ type })).find(({ name }) => name === 'c')?.subscribers ?? 0) === 0,
      )
    }
    expect(connector.subscriptions()).toEqual([])
  }
  // Not with `expect.poll`, which has a timer of its own.
  await until(() => timers() <= before)
})

test('CE-18 - streams: a shutdown ends them with all events published before', async () => {
  const { subscribe, connector, user, base } = await openCe()
  const stream = await subscribe('events?channel=c')
  for (let i = 0; i < 100; i++) void user.events.publish('c', { body: Buffer.from(`${i}`) })
  await connector.close()
  await stream.ended
  expect(stream.waiting).toHaveLength(100)
  expect((await fetch(`${base}/ce/subscribe/events?channel=c`)).status).toBe(503)
})

test('CE-15 - streams: a large event is escaped as it is read, and arrives whole before the end of its stream', async () => {
  const { base, user, connector } = await openCe({ maxBufferedBytes: 8_000_000 })
  const connection = new RawConnection(base)
  await connection.write('GET /ce/subscribe/events?channel=c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await until(async () => connector.openStreams() === 1)
  // In JSON each control character has six bytes.
  await user.events.publish('c', { body: Buffer.alloc(3_000_000, 1) })
  await user.events.publish('c', { body: Buffer.from(`[${'0,\n'.repeat(200_000)}0]`) })
  await user.events.publish('c', TEXT)
  await connector.close(10_000)
  await connection.closed
  const [, answer = ''] = connection.received.split(/\r\n\r\n([^]*)/)
  const written: string[] = []
  for (let at = 0, size = Infinity; size > 0; at = answer.indexOf('\r\n', at) + 2 + size + 2) {
    size = Number.parseInt(answer.slice(at, answer.indexOf('\r\n', at)), 16)
    written.push(answer.slice(answer.indexOf('\r\n', at) + 2, answer.indexOf('\r\n', at) + 2 + size))
  }
  const events = written.join('').matchAll(/^data: (.*)\n\n/gm)
  const bodies = Array.from(events, ([, data = '']) => JSON.parse(data).data)
  expect(bodies).toEqual(['\u0001'.repeat(3_000_000), Array.from({ length: 200_001 }, () => 0), 'hello'])
  expect(Math.max(...written.map(({ length }) => length))).toBeLessThan(300_000)
})
