import v8 from 'node:v8'
import { runInNewContext } from 'node:vm'

import { until } from '@signalbox/testkit/until'
import { describe, expect, test } from 'vitest'

import { beginStream, startAgent, taskEvent, write } from './agent.ts'
import { StreamClient } from './client.ts'
import { openHost } from './host.ts'

/** What is in use, and not what could be collected. */
function heldBytes(): number {
  v8.setFlagsFromString('--expose-gc')
  runInNewContext('gc()')
  const { external, heapUsed } = process.memoryUsage()
  return external + heapUsed
}

describe('A11 - many events, many streams', () => {
  test('A11 - 10,000 events at full speed', async () => {
    const agent = await startAgent(async (response) => {
      beginStream(response)
      for (let n = 0; n < 10_000; n++) await write(response, taskEvent('status', n))
      response.end(taskEvent('done', 'end'))
    })
    const host = await openHost(agent.url)
    const client = await StreamClient.open(host.base)
    const events = await client.all()
    expect(events.length).toBe(10_001)
    expect(events.every(({ envelope: { payload } }, n) => payload === n || n === 10_000)).toBe(true)
    await until(() => host.openRelays() === 0)
    expect(host.budget.usedBytes).toBe(0)
  })

  test(
    'A11 - 1,000 streams at once, 20 events each: in order, one terminal event each',
    { timeout: 60_000 },
    async () => {
      const agent = await startAgent(async (response, request) => {
        beginStream(response)
        const id = String(request.headers['x-broker-stream-id'])
        for (let n = 0; n < 19; n++) {
          response.write(taskEvent('status', `${id} ${n}`))
          if (n % 5 === 0) await new Promise((resolve) => setTimeout(resolve, 20))
        }
        response.end(taskEvent('done', `${id} 19`))
      })
      const host = await openHost(agent.url)
      const streams: Promise<void>[] = []
      let most = 0
      for (let n = 0; n < 1_000; n++) {
        streams.push(
          StreamClient.open(host.base).then(async (client) => {
            const id = String(client.headers['x-stream-id'])
            const events = await client.all()
            const expected = Array.from({ length: 20 }, (_, i) => `${id} ${i}`)
            if (events.map(({ envelope }) => envelope.payload).join() !== expected.join())
              throw new Error('out of order')
            if (events.filter(({ event }) => event === 'task.done').length !== 1) throw new Error('not one end')
            if (events.some(({ envelope }) => envelope.stream_id !== id)) throw new Error('of another stream')
          }),
        )
        most = Math.max(most, host.active())
      }
      await Promise.all(streams)
      await until(() => host.openRelays() === 0 && host.active() === 0 && agent.open() === 0)
      expect(host.ends.length).toBe(1_000)
      expect(host.ends.every(({ outcome }) => outcome === 'done')).toBe(true)
      expect(host.relayEnds.every(({ cancelled }) => !cancelled)).toBe(true)
      expect(host.budget.usedBytes).toBe(0)
    },
  )

  test('A11 - an agent that pushes 64 MiB at a slow reader is held back, and memory stays', async () => {
    let pushed = 0
    const event = taskEvent('artifact', 'x'.repeat(64_000))
    const agent = await startAgent(async (response) => {
      beginStream(response)
      while (pushed < 67_108_864 && (await write(response, event))) pushed += event.length
      response.end(taskEvent('done', 'end'))
    })
    const host = await openHost(agent.url)
    const before = heldBytes()
    const client = await StreamClient.open(host.base, { paused: true })
    // The reader takes nothing for a while: no more is pushed than kernels buffer on two connections, and one window.
    for (let last = -1; last !== pushed;) {
      last = pushed
      await new Promise((resolve) => setTimeout(resolve, 300))
    }
    const held = pushed
    const during = heldBytes()
    client.resume()
    let count = 0
    for (; !client.over; count += client.events.splice(0).length) await new Promise((resolve) => setTimeout(resolve, 5))
    count += client.events.length
    expect(held).toBeLessThan(33_554_432)
    expect(during - before).toBeLessThan(33_554_432)
    expect(count).toBe(Math.ceil(67_108_864 / event.length) + 1)
  })
})
