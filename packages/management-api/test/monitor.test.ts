import type { IncomingMessage } from 'node:http'
import { request } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { json } from 'node:stream/consumers'

import { expect, onTestFinished, test } from 'vitest'

import type { MonitorClient, RefusedMonitor } from './monitor-client.ts'
import { monitor, openMonitor } from './monitor-client.ts'
import { bearer, manage, text, tokens } from './management-server.ts'

const SENDER = { clientId: 'shop' }

const PING = Buffer.alloc(125)

test.each(['/api/monitor', '/v1/stats/attach'])('MGMT-5 - %s shows messages as they pass, in and out', async (path) => {
  const { url, broker } = await manage()
  const watch = await monitor(url, '', {}, path)
  const { queues } = broker.as(SENDER)
  const { id } = await queues.send('orders', { body: text('two coffees'), metadata: 'm', tags: { table: '7' } })
  const [delivery] = await broker.as({ clientId: 'kitchen' }).queues.receive('orders')
  await watch.until(({ direction }) => direction === 'out')
  const shown = {
    kind: 'message',
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    type: 'queues',
    channel: 'orders',
    id,
    metadata: 'm',
    tags: { table: '7' },
    body: 'two coffees',
    body_size: 11,
    truncated: false,
  }
  expect(watch.messages).toEqual([
    { ...shown, direction: 'in', client: 'shop' },
    { ...shown, direction: 'out', client: 'kitchen' },
  ])
  expect(delivery?.message.id).toBe(id)
})

function channels(watch: MonitorClient | undefined): string[] {
  return (watch?.messages ?? []).map(({ direction, channel }) => `${direction} ${channel}`)
}

test('MGMT-5 - filters select messages, and bodies are cut between characters', async () => {
  const { url, broker } = await manage()
  const queries = [
    '?channel=a.*',
    '?type=queues',
    '?direction=out',
    '?max_body_size=0',
    '?max_body_size=4',
    '?channel=b',
  ]
  const [wild, queues, out, none, four, named] = await Promise.all(queries.map((query) => monitor(url, query)))
  const handle = broker.as(SENDER)
  await handle.events.publish('a.x', { body: text('häß') })
  await handle.events.publish('b', { body: text('häß') })
  await handle.queues.send('a.y', { body: new Uint8Array([0xff, 0xfe, 0, 1, 2]) })
  await handle.queues.receive('a.y')
  await out?.until(({ kind }) => kind === 'message')
  await four?.until(({ direction }) => direction === 'out')
  await wild?.until(({ direction }) => direction === 'out')
  await queues?.until(({ direction }) => direction === 'out')
  await none?.until(({ direction }) => direction === 'out')
  await named?.until(({ kind }) => kind === 'message')
  expect(channels(wild)).toEqual(['in a.x', 'in a.y', 'out a.y'])
  expect(channels(queues)).toEqual(['in a.y', 'out a.y'])
  expect(channels(out)).toEqual(['out a.y'])
  expect(channels(named)).toEqual(['in b'])
  expect(none?.messages[0]).toMatchObject({ body: '', body_size: 5, truncated: true })
  expect(four?.messages[0]).toMatchObject({ body: 'hä', body_size: 5, truncated: true })
  expect(four?.messages[2]).toMatchObject({ body: '//4AAQ==', body_encoding: 'base64', body_size: 5, truncated: true })
})

test('M8, MGMT-5 - an internal channel is never shown, not even to a monitor that names it', async () => {
  const { url, broker, system } = await manage()
  const watches = await Promise.all(
    ['', '?channel=_AGENTS_.audit', '?channel=_AGENTS_.>'].map((query) => monitor(url, query)),
  )
  await system.eventsStore.publish('_AGENTS_.audit', { body: text('{}') })
  await system.events.publish('_AGENTS_.stream/1', { body: text('x') })
  await broker.as(SENDER).events.publish('last', { body: text('x') })
  await watches[0]?.until(({ channel }) => channel === 'last')
  expect(watches.map(({ messages }) => messages.length)).toEqual([1, 0, 0])
})

test('MGMT-5 - stop and start work, and an unknown command lists the allowed ones', async () => {
  const { url, broker } = await manage()
  const watch = await monitor(url)
  const publish = (body: string) => broker.as(SENDER).events.publish('a', { body: text(body) })
  watch.socket.send('stop')
  await watch.until(({ kind }) => kind === 'stopped')
  await publish('unseen')
  watch.socket.send('pause')
  expect(await watch.until(({ kind }) => kind === 'error')).toMatchObject({
    message: expect.stringContaining('start and stop'),
  })
  watch.socket.send(new Uint8Array([1, 2]))
  await expect.poll(() => watch.frames.filter(({ kind }) => kind === 'error').length).toBe(2)
  watch.socket.send(' start\n')
  await expect.poll(() => watch.frames.filter(({ kind }) => kind === 'started').length).toBe(2)
  await publish('seen')
  expect(await watch.until(({ kind }) => kind === 'message')).toMatchObject({ body: 'seen' })
  watch.socket.send('x'.repeat(2000))
  expect(await watch.closed).toBe(1009)
})

test('MGMT-4, MGMT-5 - the monitor opens before the server is ready, and then shows messages', async () => {
  const { url, broker, start } = await manage({ started: false })
  const watch = await monitor(url)
  start()
  await broker.as(SENDER).events.publish('a', { body: text('x') })
  expect(await watch.until(({ kind }) => kind === 'message')).toMatchObject({ channel: 'a' })
})

test('MGMT-2, MGMT-3 - the monitor needs a token and the role ReadOnly', async () => {
  const { url } = await manage({ authenticator: tokens() })
  const end = async (headers: Record<string, string>) =>
    ((await openMonitor(url, '', headers)) as RefusedMonitor).status
  expect([await end({}), await end(bearer('a'))]).toEqual([401, 403])
  await monitor(url, '', bearer('a:ReadOnly'))
})

test.each(['/api/monitor', '/v1/stats/attach'])('MGMT-6 - a plain GET of %s is 426', async (path) => {
  const { url } = await manage()
  for (const query of ['', '?type=topics']) {
    const plain = await fetch(`${url}${path}${query}`)
    expect([plain.status, plain.headers.get('upgrade'), await plain.json()]).toMatchObject([
      426,
      'websocket',
      { error: true, data: { code: 'UPGRADE_REQUIRED' } },
    ])
  }
})

test('MGMT-6 - a handshake that fails is 500 in the envelope, and says why', async () => {
  const { url } = await manage({ monitors: { maxMonitors: 1 } })
  const badQuery = (await openMonitor(url, '?type=topics&x=1&channel=a..b&max_body_size=-1')) as RefusedMonitor
  expect(badQuery.status).toBe(500)
  for (const name of ['type', 'x is unknown', 'channel', 'max_body_size'])
    expect(badQuery.envelope.error_string).toContain(name)
  const withoutKey = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
    request(`${url}/api/monitor`, { headers }, resolve).once('error', reject).end()
  })
  expect(withoutKey.statusCode).toBe(500)
  expect(await json(withoutKey)).toMatchObject({
    error: true,
    error_string: expect.stringContaining('Sec-WebSocket-Key'),
    data: { code: 'UPGRADE_FAILED' },
  })
  const first = await monitor(url)
  expect(await openMonitor(url)).toMatchObject({ status: 500, envelope: { data: { code: 'MONITOR_LIMIT' } } })
  first.socket.close()
  await first.closed
  await expect.poll(async () => 'status' in (await openMonitor(url))).toBe(false)
})

test('MGMT-6 - a request to upgrade anything else is answered as if it had not asked', async () => {
  const { url } = await manage()
  const answer = (path: string, upgrade: string) =>
    new Promise<string>((resolve, reject) => {
      const { hostname, port } = new URL(url)
      const socket = connect(Number(port), hostname)
      let received = ''
      socket.setEncoding('utf8').on('data', (part: string) => (received += part))
      socket.once('end', () => resolve(received)).once('error', reject)
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`)
      onTestFinished(() => void socket.destroy())
    })
  expect(await answer('/metrics', 'h2c')).toMatch(/^HTTP\/1.1 200 [^]*broker_up 1/)
  expect(await answer('/nope', 'websocket')).toMatch(/^HTTP\/1.1 404 /)
})

test('MGMT-7 - a reader that does not read never slows the senders, and gets the count of its lost messages', async () => {
  const { url, broker } = await manage({ monitors: { maxBufferedBytes: 65_536 } })
  const stalled = await monitor(url, '?max_body_size=65536')
  const reading = await monitor(url, '?max_body_size=0')
  stalled.socket.pause()
  const { events } = broker.as(SENDER)
  const body = new Uint8Array(32_768).fill(97)
  const total = 1_000
  for (let n = 0; n < total; n++) {
    await events.publish(`n.${n}`, { body })
    if (n % 20 === 19) await new Promise((resolve) => setImmediate(resolve))
  }
  await reading.until(({ channel }) => channel === `n.${total - 1}`)
  expect(reading.messages).toHaveLength(total)
  stalled.socket.resume()
  const gaps = () => stalled.frames.filter(({ kind }) => kind === 'dropped')
  const dropped = () => gaps().reduce((sum, { count }) => sum + Number(count), 0)
  // While more waits for it, the next message would be lost too.
  await expect.poll(() => stalled.messages.length + dropped()).toBe(total)
  expect(dropped()).toBeGreaterThan(0)
  expect(gaps().at(-1).total).toBe(dropped())
  await events.publish('end', { body: text('x') })
  await stalled.until(({ channel }) => channel === 'end')
  expect(stalled.messages.length + dropped()).toBe(total + 1)
})

test('MGMT-7 - messages that a busy server does not show are counted at the place of the gap, for the monitors that match', async () => {
  const { url, broker } = await manage()
  const all = await monitor(url, '?max_body_size=0')
  const some = await monitor(url, '?max_body_size=0&channel=wanted')
  const { events } = broker.as(SENDER)
  const publish = (channel: string, count: number) =>
    Array.from({ length: count }, () => events.publish(channel, { body: text('x') }))
  // In one turn, more than may wait to be shown.
  await Promise.all([...publish('other', 5_000), ...publish('wanted', 500), ...publish('other', 500)])
  await all.until(({ kind }) => kind === 'dropped')
  await events.publish('wanted', { body: text('x') })
  await Promise.all([all, some].map((watch) => watch.until(({ channel }) => channel === 'wanted')))
  expect(some.frames.map(({ kind, count }) => [kind, count])).toEqual([
    ['started', undefined],
    ['dropped', 500],
    ['message', undefined],
  ])
  const kinds = all.frames.map(({ kind }) => String(kind))
  expect(kinds.filter((kind) => kind === 'dropped')).toHaveLength(1)
  expect(kinds.slice(-2)).toEqual(['dropped', 'message'])
  expect(all.messages.length + Number(all.frames.at(-2).count)).toBe(6_001)
})

test('MGMT-7 - while no reader reads, each gets the count of its missed messages; later monitors get no count', async () => {
  const { url, broker } = await manage({ monitors: { maxBufferedBytes: 65_536, pingMs: 60_000 } })
  const stalled = await Promise.all(['', '&channel=b'].map((more) => monitor(url, `?max_body_size=65536${more}`)))
  for (const { socket } of stalled) socket.pause()
  const { events } = broker.as(SENDER)
  const body = new Uint8Array(65_536).fill(97)
  const publish = async (channel: string, count: number) => {
    for (let n = 0; n < count; n++) {
      await events.publish(channel, { body })
      if (n % 10 === 9) await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await publish('b', 400)
  await publish('a', 300)
  const later = await monitor(url, '?max_body_size=0')
  await publish('b', 200)
  for (const { socket } of stalled) socket.resume()
  await Promise.all(stalled.map((watch) => watch.until(({ kind }) => kind === 'dropped')))
  await publish('b', 1)
  const counted = () =>
    stalled.map((watch) => {
      const gaps = watch.frames.filter(({ kind }) => kind === 'dropped')
      return watch.messages.length + gaps.reduce((sum, { count }) => sum + Number(count), 0)
    })
  await expect.poll(() => [...counted(), later.messages.length], { timeout: 20_000 }).toEqual([901, 601, 201])
  expect(later.frames.filter(({ kind }) => kind === 'dropped')).toEqual([])
})

test.each(['pings', 'commands'])('MGMT-8 - a flood of %s ends the monitor', async (kind) => {
  const { url } = await manage()
  const watch = await monitor(url)
  for (let i = 0; i < 2_000; i++) {
    if (kind === 'pings') watch.socket.ping(PING)
    else watch.socket.send('x')
  }
  expect(await watch.closed).toBe(1008)
  expect(watch.frames.at(-1)).toEqual({ kind: 'end', reason: 'more than 100 frames came within a second' })
  expect(watch.frames.length).toBeLessThan(150)
})

test('MGMT-8 - frames that come at once are read one in a tick', async () => {
  const { url } = await manage()
  const socket = await rawMonitor(url, '')
  let ticks = 0
  const count = (): void => {
    ticks++
    counting = setImmediate(count)
  }
  let counting = setImmediate(count)
  onTestFinished(() => clearImmediate(counting))
  const taken = new Promise<number>((resolve) => {
    let answered = 0
    socket.on('data', (data: Buffer) => {
      answered += data.length
      if (answered >= 2 * 90) resolve(ticks)
    })
  })
  const before = ticks
  // Pings without a payload, masked; their answers have two bytes.
  socket.write(Buffer.alloc(6 * 90, Buffer.from([0x89, 0x80, 1, 2, 3, 4])))
  expect((await taken) - before).toBeGreaterThanOrEqual(90)
})

test('MGMT-7 - a thousand monitors see every message', async () => {
  const { url, broker, get } = await manage({ monitors: { pingMs: 60_000 } })
  const watches: MonitorClient[] = []
  for (let n = 0; n < 1000; n += 100)
    watches.push(...(await Promise.all(Array.from({ length: 100 }, () => monitor(url, '?max_body_size=16')))))
  expect(await get('/api/snapshot')).toMatchObject({ data: { monitors: 1000 } })
  expect(await openMonitor(url)).toMatchObject({ status: 500, envelope: { data: { code: 'MONITOR_LIMIT' } } })
  const { events } = broker.as(SENDER)
  for (let n = 0; n < 10; n++) await events.publish('a', { body: text(`event ${n}`) })
  await Promise.all(watches.map((watch) => watch.until(({ body }) => body === 'event 9')))
  for (const { messages } of watches) expect(messages).toHaveLength(10)
}, 60_000)

test('MGMT-8 - a peer that does not answer pings is cut off, one that does stays', async () => {
  const { url, get } = await manage({ monitors: { pingMs: 500 } })
  const live = await monitor(url)
  const dead = await monitor(url)
  let pings = 0
  live.socket.on('ping', () => pings++)
  dead.socket.pause()
  await expect.poll(async () => (await get<{ readonly monitors: number }>('/api/snapshot')).data.monitors).toBe(1)
  await expect.poll(() => pings).toBeGreaterThan(3)
  expect(live.socket.readyState).toBe(live.socket.OPEN)
})

test('MGMT-8 - a peer whose answer came while the server was busy stays', async () => {
  const { url } = await manage({ monitors: { pingMs: 300 } })
  const live = await monitor(url)
  let pings = 0
  live.socket.on('ping', () => {
    pings++
    // The answer is on its way. The server, in this process, comes to read it after the next ping is due.
    if (pings === 1) for (const end = performance.now() + 400; performance.now() < end;);
  })
  await expect.poll(() => pings).toBeGreaterThan(2)
  expect(live.socket.readyState).toBe(live.socket.OPEN)
})

test('MGMT-8 - a reader that is behind, and reads, is not cut off; it is when it takes nothing', async () => {
  const { url, broker, get } = await manage({ monitors: { pingMs: 1_000, maxBufferedBytes: 131_072 } })
  const { events } = broker.as(SENDER)
  const body = new Uint8Array(65_536).fill(97)
  // It answers no ping: as one whose answer is behind megabytes that it has to read first.
  const socket = await rawMonitor(url, '?max_body_size=65536')
  const monitors = async (): Promise<number> =>
    (await get<{ readonly monitors: number }>('/api/snapshot')).data.monitors
  socket.on('readable', () => {})
  const publishFor = async (milliseconds: number, read: () => void): Promise<void> => {
    for (const end = performance.now() + milliseconds; performance.now() < end;) {
      read()
      for (let n = 0; n < 4; n++) await events.publish('a', { body })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  // Until everything between it and us is full.
  await publishFor(500, () => {})
  await publishFor(4_000, () => void socket.read(Math.min(65_536, socket.readableLength)))
  expect(await monitors()).toBe(1)
  await expect.poll(monitors, { timeout: 20_000 }).toBe(0)
}, 60_000)

/** A monitor that reads only what it is told to. */
function rawMonitor(url: string, query: string): Promise<Socket> {
  const headers = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }
  return new Promise((resolve, reject) => {
    const outgoing = request(`${url}/api/monitor${query}`, { headers })
    outgoing.once('upgrade', (_response, socket: Socket) => {
      socket.on('error', () => {})
      onTestFinished(() => void socket.destroy())
      resolve(socket)
    })
    outgoing.on('error', reject).end()
  })
}

test('S9 - a monitor ends when its token expires', async () => {
  const { url } = await manage({ authenticator: tokens(400) })
  const watch = await monitor(url, '', bearer('a:ReadOnly'))
  expect(await watch.closed).toBe(1008)
  expect(watch.frames.at(-1)).toEqual({ kind: 'end', reason: 'the token has expired' })
})

test('MGMT-8 - a shutdown ends monitors politely, and does not wait for those that are stalled', async () => {
  const { url, close } = await manage()
  const watch = await monitor(url)
  const stalled = await monitor(url)
  stalled.socket.pause()
  await close()
  expect(await watch.closed).toBe(1001)
  expect(watch.frames.at(-1)).toEqual({ kind: 'end', reason: 'the server is shutting down' })
})
