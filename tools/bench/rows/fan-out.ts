import { newFolder, startWorker } from '../processes.ts'
import { interleave, medians } from '../rounds.ts'
import type { BenchContext, Row } from '../row.ts'
import type { Subject } from '../subject.ts'
import type { Work } from '../workers/work.ts'
import { atMost } from './goals.ts'

const SUBSCRIBERS = 500

async function fanOut(context: BenchContext, subject: Subject, subscribe: string, publish: string, publishes: number) {
  const worker = startWorker(context, 'broker', subject)
  const load = { channel: 'bench.fan-out', subscribers: SUBSCRIBERS, publishes, bytes: 1024 }
  await worker.call('open', { path: newFolder(context) })
  await worker.call(subscribe, load)
  const run = async () => {
    const { operations, wallMs, cpuMicros } = await worker.call<Work>(publish, load)
    return { 'CPU µs/delivery': cpuMicros / operations, 'deliveries/s': operations / (wallMs / 1000) }
  }
  await run()
  return { worker, run }
}

/** The cost of one more subscriber. */
export const row: Row = {
  id: 'fan-out',
  title: 'fan-out in process to 500 subscribers: CPU per delivery',
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const alternatives = []
    for (const subject of context.subjects) {
      for (const [label, subscribe, publish, publishes] of [
        ['an events channel', 'subscribeEvents', 'fanOutEvents', context.quick ? 200 : 2000],
        ['an events store', 'subscribeStore', 'fanOutStore', context.quick ? 50 : 200],
      ] as const) {
        const { worker, run } = await fanOut(context, subject, subscribe, publish, publishes)
        stack.use(worker)
        alternatives.push({ label, subject, run })
      }
    }
    const measured = await interleave(context.rounds, alternatives)
    return alternatives.map(({ label, subject }, i) => {
      const rounds = measured[i] ?? []
      return {
        name: `fan-out of ${label} to ${SUBSCRIBERS} subscribers`,
        subject: subject.label,
        goal: atMost(12, 6, 'µs'),
        samples: rounds.map((round) => round['CPU µs/delivery']),
        details: medians('', rounds),
      }
    })
  },
}
