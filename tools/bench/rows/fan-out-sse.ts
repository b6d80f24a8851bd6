import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { connect } from 'node:net'

import { startCeHost } from '../processes.ts'
import { interleave, medians } from '../rounds.ts'
import type { BenchContext, Row } from '../row.ts'
import type { Subject } from '../subject.ts'
import type { Publishing } from '../workers/ce-host.ts'
import { atMost } from './goals.ts'

const SUBSCRIBERS = 500
const CHANNEL = 'bench.fan-out'
const FRAME = Buffer.from('event: cloudevent\n')

/** Subscribers over bare sockets, which count what they get and do nothing else. */
class Subscribers {
  #received = 0
  #target = Number.POSITIVE_INFINITY
  #reached: () => void = () => {}
  readonly #sockets: Socket[] = []

  async open(url: string): Promise<void> {
    const { hostname, port } = new URL(url)
    const head = `GET /ce/subscribe/events?channel=${CHANNEL} HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`
    const one = async (): Promise<void> => {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const socket = connect(Number(port), hostname, () => socket.write(head))
      socket.on('error', reject)
      socket.once('data', () => resolve())
      // A frame's name may be cut by the end of a chunk: what could be its beginning waits for the next one.
      let rest: Buffer = Buffer.alloc(0)
      socket.on('data', (chunk: Buffer) => {
        const bytes = rest.byteLength === 0 ? chunk : Buffer.concat([rest, chunk])
        let from = 0
        for (let at = bytes.indexOf(FRAME); at !== -1; at = bytes.indexOf(FRAME, from)) {
          from = at + FRAME.byteLength
          this.#received++
        }
        rest = bytes.subarray(Math.max(from, bytes.byteLength - FRAME.byteLength + 1))
        if (this.#received >= this.#target) this.#reached()
      })
      this.#sockets.push(socket)
      await promise
    }
    await Promise.all(Array.from({ length: SUBSCRIBERS }, one))
  }

  /** Resolves when they have got so many more, all together. */
  receive(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#target = this.#received + count
      this.#reached = resolve
    })
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}

async function fanOut(context: BenchContext, subject: Subject, stack: AsyncDisposableStack, load: Publishing) {
  const { process: host, url } = await startCeHost(context, subject)
  stack.use(host)
  const subscribers = stack.use(new Subscribers())
  await subscribers.open(url)
  const deliveries = load.events * SUBSCRIBERS
  const run = async () => {
    const all = subscribers.receive(deliveries)
    const before = await host.cpuMicros()
    await host.call('publish', load)
    await all
    return { 'CPU µs/delivery': ((await host.cpuMicros()) - before) / deliveries }
  }
  await run()
  return run
}

/** What one more subscriber of a channel costs over server-sent events. */
export const row: Row = {
  id: 'fan-out-sse',
  title: 'fan-out over server-sent events to 500 subscribers: CPU per delivery',
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const alternatives = []
    for (const subject of context.subjects) {
      for (const perSecond of [100, 1000]) {
        const events = context.quick ? perSecond : perSecond * 3
        const run = await fanOut(context, subject, stack, { channel: CHANNEL, events, perSecond, bytes: 256 })
        alternatives.push({ label: `${perSecond} events/s`, subject, run })
      }
    }
    const measured = await interleave(context.rounds, alternatives)
    return alternatives.map(({ label, subject }, i) => {
      const rounds = measured[i] ?? []
      return {
        name: `${label} to ${SUBSCRIBERS} subscribers`,
        subject: subject.label,
        goal: atMost(12, 6, 'µs'),
        samples: rounds.map((round) => round['CPU µs/delivery']),
        details: medians('', rounds),
      }
    })
  },
}
