import { Buffer } from 'node:buffer'

import { startCeHost } from '../processes.ts'
import { interleave, medians } from '../rounds.ts'
import type { BenchContext, Row } from '../row.ts'
import { SseReaders } from '../sse-readers.ts'
import type { Subject } from '../subject.ts'
import type { Publishing } from '../workers/ce-host.ts'
import { atMost } from './goals.ts'

const SUBSCRIBERS = 500
const CHANNEL = 'bench.fan-out'

async function fanOut(context: BenchContext, subject: Subject, stack: AsyncDisposableStack, load: Publishing) {
  const { process, url } = await startCeHost(context, subject)
  stack.use(process)
  const { host } = new URL(url)
  const request = Buffer.from(`GET /ce/subscribe/events?channel=${CHANNEL} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  const subscribers = stack.use(
    await SseReaders.open({ url, count: SUBSCRIBERS, request, mark: 'event: cloudevent\n' }),
  )
  const deliveries = load.events * SUBSCRIBERS
  const run = async () => {
    const all = subscribers.receive(deliveries)
    const before = await process.cpuMicros()
    await process.call('publish', load)
    await all
    return { 'CPU µs/delivery': ((await process.cpuMicros()) - before) / deliveries }
  }
  await run()
  return run
}

/** The cost of one more subscriber of a channel over server-sent events. */
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
