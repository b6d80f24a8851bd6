import { Buffer } from 'node:buffer'
import { connect } from 'node:net'
import type { Socket } from 'node:net'

import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import { openCe } from './ce-server.ts'

/** Reads the sequence of numbers in `"data":N` off a raw stream, and checks their order as they come. */
class Counter {
  next = 0
  problem: string | undefined
  #rest = ''

  read(chunk: Buffer): void {
    const text = this.#rest + chunk.toString('latin1')
    let at = 0
    for (;;) {
      const start = text.indexOf('"data":', at)
      const end = start === -1 ? -1 : text.indexOf('}', start)
      if (end === -1) break
      const number = Number(text.slice(start + 7, end))
      if (number !== this.next) this.problem ??= `${number} came where ${this.next} was due`
      this.next++
      at = end
    }
    this.#rest = text.slice(at)
  }
}

test('CE-19 - fan-out: each of 500 subscribers gets all 1,000 events in order', { timeout: 60_000 }, async () => {
  const { base, user, connector } = await openCe()
  const port = Number(new URL(base).port)
  const counters: Counter[] = []
  const sockets: Socket[] = []
  const subscribers = 500
  const total = 1000
  await Promise.all(
    Array.from(
      { length: subscribers },
      () =>
        new Promise<void>((resolve, reject) => {
          const counter = new Counter()
          counters.push(counter)
          const socket = connect(port, '127.0.0.1', () =>
            socket.write('GET /ce/subscribe/events?channel=ticks HTTP/1.1\r\nHost: x\r\n\r\n'),
          )
          sockets.push(socket)
          socket.once('data', () => resolve())
          socket.on('data', (chunk: Buffer) => counter.read(chunk))
          socket.on('error', reject)
        }),
    ),
  )
  expect(connector.openStreams()).toBe(subscribers)
  // Ten a turn: as fast as the loop goes round with everybody's reading in the same process.
  for (let at = 0; at < total; at += 10) {
    for (let i = at; i < at + 10; i++) void user.events.publish('ticks', { body: Buffer.from(String(i)) })
    await new Promise((resolve) => setImmediate(resolve))
  }
  await until(() => counters.every(({ next, problem }) => next >= total || problem !== undefined))
  expect(counters.filter(({ problem }) => problem !== undefined).map(({ problem }) => problem)).toEqual([])
  expect(counters.filter(({ next }) => next !== total)).toEqual([])
  for (const socket of sockets) socket.destroy()
  await until(() => connector.openStreams() === 0)
  await until(async () => (await user.channels.info('events', 'ticks')).subscribers === 0)
})
