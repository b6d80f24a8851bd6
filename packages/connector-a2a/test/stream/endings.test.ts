import type { ServerResponse } from 'node:http'

import { until } from '@signalbox/testkit/until'
import { describe, expect, test } from 'vitest'

import { resolveLimits } from '../../src/stream/limits.ts'
import { decodeFrame, streamChannel } from '../../src/stream/link/messages.ts'
import { StreamTimer } from '../../src/stream/stream-timer.ts'
import type { AgentBehavior } from './agent.ts'
import { answering, beginStream, resultEvent, startAgent, taskEvent } from './agent.ts'
import { sharedBench, StreamClient } from './client.ts'
import { openHost } from './host.ts'

const bench = sharedBench({ limits: { maxEventBytes: 100_000 } })

const NO_END = { code: -32004, message: 'stream ended without a terminal event' }

/** The events of a stream as `[event, payload]`. */
async function ending(behavior: AgentBehavior): Promise<readonly (readonly [string, unknown])[]> {
  const before = bench.host().ends.length
  const events = await bench.events(behavior)
  // The client may see the end before the host has reported it.
  await until(() => bench.host().ends.length > before)
  return events.map(({ event, envelope: { payload } }) => [event, payload])
}

const task = (state: string) => ({ kind: 'task', id: 't', status: { state } })

const json = (value: unknown) => answering(JSON.stringify(value), 'application/json; charset=utf-8')

describe('A9 - a stream has exactly one terminal event, its last', () => {
  test('A9 - nothing follows the first terminal event', async () => {
    for (const type of ['done', 'error'] as const) {
      const late = taskEvent('status', 2) + taskEvent('done', 3) + taskEvent('error', 4)
      expect(await ending(answering(taskEvent('status', 0) + taskEvent(type, 1) + late))).toEqual([
        ['task.status', 0],
        [`task.${type}`, 1],
      ])
    }
  })

  test('A9 - events after the terminal one are not waited for: an agent that never ends is cut off', async () => {
    let closed = false
    const events = await ending((response) => {
      response.once('close', () => (closed = true))
      beginStream(response).write(taskEvent('done', 1))
      const chatter = setInterval(() => response.write(taskEvent('status', 'late'.repeat(5_000))), 5)
      response.once('close', () => clearInterval(chatter))
    })
    expect(events).toEqual([['task.done', 1]])
    await until(() => closed)
    await until(() => bench.host().openRelays() === 0)
    // It had said its last word: there is nothing to cancel.
    expect(bench.host().relayEnds.at(-1)).toEqual({ cancelled: false })
  })

  test('A9 - an end without a terminal event is an error', async () => {
    expect(await ending(answering(''))).toEqual([['task.error', NO_END]])
    expect(await ending(answering(taskEvent('status', 1)))).toEqual([
      ['task.status', 1],
      ['task.error', NO_END],
    ])
    const working = { kind: 'task', id: 't', status: { state: 'working' } }
    expect(await ending(answering(resultEvent(working)))).toEqual([
      ['message', working],
      ['task.error', NO_END],
    ])
    expect(bench.host().ends.at(-1)).toEqual({ outcome: 'error', errorCode: -32004 })
  })

  test('A9 - artifacts after a finished task leave it finished; those of an unfinished task do not', async () => {
    const done = { kind: 'task', id: 't', status: { state: 'completed' } }
    const artifact = { kind: 'artifact-update', taskId: 't' }
    const working = { kind: 'status-update', status: { state: 'working' } }
    expect((await ending(answering(resultEvent(done) + resultEvent(artifact)))).at(-1)).toEqual(['task.done', done])
    expect((await ending(answering(resultEvent(done) + resultEvent(working)))).at(-1)).toEqual(['task.error', NO_END])
  })

  test('A9 - the end after a message event of the first dialect repeats it', async () => {
    expect(await ending(answering('data: {"type":"message","payload":{"a":1}}\n\n'))).toEqual([
      ['message', { a: 1 }],
      ['task.done', { a: 1 }],
    ])
  })

  test('A9 - a last event without its blank line counts when the response has ended', async () => {
    expect(await ending(answering(taskEvent('done', 1).trimEnd()))).toEqual([['task.done', 1]])
    expect(await ending(answering(`${taskEvent('status', 1)}event: task.done\ndata: {"type":"do`))).toEqual([
      ['task.status', 1],
      ['task.error', NO_END],
    ])
  })

  test('A9 - a connection that breaks in mid-event, or after a message, is an error', async () => {
    for (const text of [`${taskEvent('status', 1)}event: task.done\ndata: {"ty`, resultEvent({ kind: 'message' })]) {
      const events = await ending((response) => {
        beginStream(response).write(text, () => setTimeout(() => response.socket?.resetAndDestroy(), 20))
      })
      expect(events.length).toBe(2)
      expect(events[1]).toEqual(['task.error', NO_END])
    }
  })

  test("A9 - an event over AgentMaxResponseBytes is an error; the agent's connection is aborted and the agent notified", async () => {
    let closed = false
    const told = bench.agent().cancelled.length
    const events = await ending((response) => {
      response.once('close', () => (closed = true))
      beginStream(response).write(taskEvent('status', 1) + taskEvent('status', 'x'.repeat(100_001)))
    })
    expect(events).toEqual([
      ['task.status', 1],
      ['task.error', { code: -32603, message: 'agent response too large' }],
    ])
    await until(() => closed && bench.agent().cancelled.length > told)
    expect(bench.host().ends.at(-1)).toEqual({ outcome: 'error', errorCode: -32603 })
  })
})

describe('A9 - an agent that answers with plain JSON', () => {
  test('A9 - gives one task.done or task.error carrying it', async () => {
    const rows: readonly (readonly [unknown, string, unknown])[] = [
      [{ jsonrpc: '2.0', id: 1, result: { kind: 'message', parts: [] } }, 'task.done', { kind: 'message', parts: [] }],
      [{ jsonrpc: '2.0', id: 1, result: task('completed') }, 'task.done', task('completed')],
      [{ jsonrpc: '2.0', id: 1, result: task('working') }, 'task.done', task('working')],
      [{ jsonrpc: '2.0', id: 1, result: task('failed') }, 'task.error', task('failed')],
      [{ jsonrpc: '2.0', id: 1, result: 'text' }, 'task.done', 'text'],
      [{ jsonrpc: '2.0', id: 1, error: { code: -1, message: 'no' } }, 'task.error', { code: -1, message: 'no' }],
      [{ other: [1] }, 'task.done', { other: [1] }],
    ]
    for (const [body, event, payload] of rows) expect(await ending(json(body))).toEqual([[event, payload]])
  })

  test('A9 - a large answer arrives whole, in one event', async () => {
    const result = { kind: 'message', text: 'é'.repeat(1_500_000) }
    const agent = await startAgent(json({ jsonrpc: '2.0', id: 1, result }))
    const host = await openHost(agent.url)
    const client = await StreamClient.open(host.base)
    const events = await client.all()
    expect(events.map(({ event }) => event)).toEqual(['task.done'])
    expect(events[0]?.envelope.payload).toEqual(result)
  })

  test('A9 - an event that is not JSON, or too large, is an error', async () => {
    const invalid = [['task.error', { code: -32004, message: 'invalid response from agent' }]]
    expect(await ending(answering('<html>', 'text/html'))).toEqual(invalid)
    expect(await ending(answering('', 'application/json'))).toEqual(invalid)
    expect(await ending((response) => void response.writeHead(204).end())).toEqual(invalid)
    expect(await ending(json('x'.repeat(100_000)))).toEqual([
      ['task.error', { code: -32603, message: 'agent response too large' }],
    ])
  })
})

describe('A9 - idle streams and refusals', () => {
  test('A9 - a stream whose agent sends only comments is not idle', async () => {
    // The comments come for three times as long as a silent agent would have.
    const agent = await startAgent((response) => {
      beginStream(response)
      const comments = setInterval(() => response.write(': working\n\n'), 20)
      setTimeout(() => {
        clearInterval(comments)
        response.end(taskEvent('done', 'finished'))
      }, 1_500)
    })
    const host = await openHost(agent.url, { idleMs: 500, limits: { heartbeatMs: 100 } })
    const client = await StreamClient.open(host.base)
    expect((await client.all()).map(({ event, envelope: { payload } }) => [event, payload])).toEqual([
      ['task.done', 'finished'],
    ])
  })

  test('A9 - an idle stream ends with an error, and the agent is notified', async () => {
    const agent = await startAgent((response) => void beginStream(response).write(taskEvent('status', 1)))
    const host = await openHost(agent.url, { idleMs: 500, keepAliveMs: 10 })
    const client = await StreamClient.open(host.base)
    expect((await client.all()).map(({ event, envelope: { payload } }) => [event, payload])).toEqual([
      ['task.status', 1],
      ['task.error', { code: -32001, message: 'stream idle timeout' }],
    ])
    await until(() => agent.open() === 0 && agent.cancelled.length === 1 && host.active() === 0)
    expect(host.ends).toEqual([{ outcome: 'error', errorCode: -32001 }])
    expect(agent.cancelled).toEqual(host.streamIds)
  })

  test('A9 - a heartbeat says that the agent lives for a comment, not for an event before it', async () => {
    const begun = Promise.withResolvers<ServerResponse>()
    const agent = await startAgent((response) => begun.resolve(beginStream(response)))
    const host = await openHost(agent.url, { limits: { heartbeatMs: 50 } })
    const client = await StreamClient.open(host.base)
    const beats: boolean[] = []
    const subscription = await host.system.events.subscribe(streamChannel(host.streamIds[0] ?? ''), {}, (message) => {
      const received = decodeFrame(message)
      if (received?.kind === 'heartbeat') beats.push(received.alive)
      else beats.length = 0
    })
    const response = await begun.promise
    response.write(taskEvent('status', 1))
    await client.seen(1)
    await until(() => beats.length >= 2)
    expect(beats.slice(0, 2)).toEqual([false, false])
    response.write(': working\n\n')
    await until(() => beats.includes(true))
    await subscription.close()
    client.cut()
  })

  test('SVC-3 - keepalive comments are sent at a fixed interval', async () => {
    const agent = await startAgent((response) => void beginStream(response))
    const host = await openHost(agent.url, { keepAliveMs: 10 })
    const client = await StreamClient.open(host.base)
    await until(() => client.comments.length >= 4)
    expect(client.comments.slice(0, 4)).toEqual(['open', 'keepalive', 'keepalive', 'keepalive'])
    client.cut()
  })

  test('A9, A12 - a refusal of the agent before its headers is a refusal, not a stream', async () => {
    const agent = await startAgent((response) => {
      response.writeHead(409, { 'content-type': 'application/json' }).end('{"busy":true}')
    })
    const host = await openHost(agent.url)
    const client = await StreamClient.open(host.base)
    await client.ended
    expect(client.isStream).toBe(false)
    expect(JSON.parse(client.text)).toMatchObject({ executed: true, status: 409, body: '{"busy":true}' })
    const info = (await host.system.channels.list({ type: 'events' })).filter(({ isActive }) => isActive)
    expect(info.every(({ name }) => !name.includes('/control'))).toBe(true)
  })

  test('A12 - an agent that sends no headers in time is refused', async () => {
    const agent = await startAgent(() => {})
    const host = await openHost(agent.url, { timeoutMs: 60 })
    const client = await StreamClient.open(host.base)
    await client.ended
    expect(JSON.parse(client.text)).toMatchObject({ executed: false, failure: 'timeout' })
    await until(() => agent.open() === 0)
  })
})

test('A11 - stream timer: a stream whose tick throws gets no more ticks, the others do', async () => {
  const timer = StreamTimer.for(resolveLimits({ heartbeatMs: 50 }))
  const crashed = Promise.withResolvers<unknown>()
  let broken = 0
  const failing = {
    tick() {
      broken++
      throw new Error('a bug')
    },
    crash: (error: unknown) => crashed.resolve(error),
  }
  const twice = Promise.withResolvers<void>()
  let seen = 0
  const well = {
    tick: () => void (++seen === 3 && twice.resolve()),
    crash: (error: unknown) => twice.reject(error),
  }
  timer.add(failing)
  timer.add(well)
  await twice.promise
  timer.delete(well)
  expect([await crashed.promise, broken]).toEqual([new Error('a bug'), 1])
})
