import { until } from '@signalbox/testkit/until'
import { describe, expect, test } from 'vitest'

import { beginStream, startAgent, taskEvent, write } from './agent.ts'
import { StreamClient } from './client.ts'
import { openHost } from './host.ts'

/** An agent that sends a status at once, and then nothing. */
const silent = () => startAgent((response) => void beginStream(response).write(taskEvent('status', 1)))

describe('A10 - clients that go away', () => {
  test("A10 - in mid-stream: the agent's connection is aborted and the agent notified at once, and the gauge returns to 0", async () => {
    const agent = await silent()
    const host = await openHost(agent.url)
    const client = await StreamClient.open(host.base)
    await client.seen(1)
    expect([host.active(), agent.open()]).toEqual([1, 1])
    client.cut()
    await until(() => host.active() === 0 && agent.open() === 0 && agent.cancelled.length === 1)
    expect(agent.cancelled).toEqual(host.streamIds)
    expect(agent.streamIds).toEqual(host.streamIds)
    expect(host.ends).toEqual([{ outcome: 'disconnected' }])
    expect(host.relayEnds).toEqual([{ cancelled: true }])
    expect(host.budget.usedBytes).toBe(0)
  })

  test('A10 - while the agent sends at full speed', async () => {
    const agent = await startAgent(async (response) => {
      beginStream(response)
      const event = taskEvent('artifact', 'x'.repeat(10_000))
      while (await write(response, event));
    })
    const host = await openHost(agent.url)
    const clients = await Promise.all(Array.from({ length: 20 }, () => StreamClient.open(host.base)))
    await Promise.all(clients.map((client) => client.seen(20)))
    for (const client of clients) client.cut()
    await until(() => host.active() === 0 && agent.open() === 0 && agent.cancelled.length === 20)
    expect(host.budget.usedBytes).toBe(0)
  })

  test('A10 - before the stream opens: the request to the agent is aborted', async () => {
    const agent = await startAgent(() => {})
    const host = await openHost(agent.url)
    const opening = StreamClient.open(host.base)
    await until(() => agent.open() === 1)
    const { request } = await import('node:http')
    const outgoing = request(host.base, { method: 'POST', agent: false })
    outgoing.on('error', () => {})
    outgoing.end('{"jsonrpc":"2.0","id":2,"method":"message/stream"}')
    await until(() => agent.open() === 2)
    outgoing.destroy()
    await until(() => agent.open() === 1)
    agent.server.closeAllConnections()
    expect((await opening).isStream).toBe(false)
    expect(host.active()).toBe(0)
  })

  test('A10, A11 - any node can cancel a stream through the control channel', async () => {
    const agent = await silent()
    const host = await openHost(agent.url, { limits: { silenceMs: 200, heartbeatMs: 20 } })
    const client = await StreamClient.open(host.base)
    await client.seen(1)
    await host.cancel(host.streamIds[0] ?? '')
    await until(() => agent.open() === 0 && agent.cancelled.length === 1)
    expect((await client.all()).at(-1)?.envelope.payload).toEqual({ code: -32603, message: 'stream interrupted' })
    // For a stream that is over, or never was, nothing happens.
    await host.cancel(host.streamIds[0] ?? '')
    await host.cancel('unknown')
  })
})

describe('A11 - clients that do not read', () => {
  test("A11 - a client that reads nothing gets task.error slow consumer; the agent's connection is aborted and the agent notified", async () => {
    let pushed = 0
    const agent = await startAgent(async (response) => {
      beginStream(response)
      const event = taskEvent('artifact', 'x'.repeat(60_000))
      while (await write(response, event)) pushed += event.length
    })
    const host = await openHost(agent.url, { limits: { slowConsumerMs: 2_000 } })
    const client = await StreamClient.open(host.base, { paused: true })
    await until(() => agent.open() === 0 && agent.cancelled.length === 1)
    // What kernels buffer on three connections, and one window.
    expect(pushed).toBeLessThan(32_000_000)
    client.resume()
    const events = await client.all()
    expect(events.at(-1)).toMatchObject({
      event: 'task.error',
      envelope: { payload: { code: -32603, message: 'slow consumer' } },
    })
    expect(events.filter(({ event }) => event === 'task.error').length).toBe(1)
    await until(() => host.active() === 0)
    expect(host.ends).toEqual([{ outcome: 'error', errorCode: -32603 }])
    expect(host.budget.usedBytes).toBe(0)
  })

  test('A11 - a client that never reads again is cut off after its time', async () => {
    const agent = await startAgent(async (response) => {
      beginStream(response)
      const event = taskEvent('artifact', 'x'.repeat(60_000))
      while (await write(response, event));
    })
    // Longer than the host may pause: otherwise the client counts as slow before the kernel's buffers are full.
    const host = await openHost(agent.url, { limits: { slowConsumerMs: 1_000 } })
    const client = await StreamClient.open(host.base, { paused: true })
    await until(() => host.ends.length === 1)
    expect(host.active()).toBe(0)
    client.resume()
    expect(await client.ended).toBe(false)
  })

  test('A11 - a client that reads a byte at a time is slow as well', async () => {
    const agent = await startAgent(async (response) => {
      beginStream(response)
      const event = taskEvent('artifact', 'x'.repeat(60_000))
      while (await write(response, event));
    })
    const host = await openHost(agent.url, { limits: { slowConsumerMs: 500 } })
    const { connect } = await import('node:net')
    const socket = connect(Number(new URL(host.base).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}')
    const reader = setInterval(() => socket.read(1), 20)
    socket.on('readable', () => {})
    await until(() => agent.cancelled.length === 1 || agent.open() === 0)
    await until(() => host.ends.length === 1)
    expect(host.ends[0]).toEqual({ outcome: 'error', errorCode: -32603 })
    clearInterval(reader)
    socket.destroy()
  })

  test('A9, A11 - a client that is slower than the idle time is not idle', async () => {
    const agent = await startAgent(async (response) => {
      beginStream(response)
      const event = taskEvent('artifact', 'x'.repeat(60_000))
      for (let n = 0; n < 300; n++) await write(response, event)
      response.end(taskEvent('done', 'end'))
    })
    const host = await openHost(agent.url, { idleMs: 1_000 })
    const client = await StreamClient.open(host.base, { paused: true })
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    client.resume()
    const events = await client.all()
    expect([events.length, events.at(-1)?.event]).toEqual([301, 'task.done'])
  })
})

describe('S9 - ends from outside', () => {
  test('S9 - a stream ends when the token that opened it expires', async () => {
    const agent = await silent()
    const host = await openHost(agent.url, { endsAt: () => Date.now() + 100 })
    const client = await StreamClient.open(host.base)
    const events = await client.all()
    expect(events.at(-1)).toMatchObject({ event: 'task.error', envelope: { payload: { code: -32010 } } })
    await until(() => agent.open() === 0 && agent.cancelled.length === 1)
  })

  test('streams - a node that shuts down ends its clients streams politely, and its agents streams', async () => {
    const agent = await silent()
    const host = await openHost(agent.url)
    const [first, second] = [await StreamClient.open(host.base), await StreamClient.open(host.base)]
    await Promise.all([first.seen(1), second.seen(1)])
    host.closeStreams()
    for (const client of [first, second]) {
      expect((await client.all()).at(-1)?.envelope).toMatchObject({ type: 'error', payload: { code: -32603 } })
      expect(await client.ended).toBe(true)
    }
    await until(() => agent.open() === 0 && agent.cancelled.length === 2)
    const third = await StreamClient.open(host.base)
    await third.seen(1)
    host.stopRelays()
    expect((await third.all()).at(-1)?.envelope.payload).toEqual({ code: -32603, message: 'stream interrupted' })
    await until(() => agent.open() === 0 && agent.cancelled.length === 3)
  })
})
