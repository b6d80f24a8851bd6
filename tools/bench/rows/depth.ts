import { depth, FILLED_CHANNEL, filledStore } from '../filled-store.ts'
import { newFolder, startWorker } from '../processes.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import type { Subject } from '../subject.ts'
import type { Work } from '../workers/work.ts'
import { atLeast, atMost } from './goals.ts'

const MEMBERS = 64
const MIB = 1024 * 1024

/** A worker on a store that sends for a round and then receives as many messages from the queue's head. */
async function traffic(context: BenchContext, subject: Subject, path: string) {
  const worker = startWorker(context, 'broker', subject)
  await worker.call('open', { path })
  const rssBytes = await worker.rssBytes()
  const run = async (durationMs: number) => {
    const load = { channel: FILLED_CHANNEL, members: MEMBERS, bytes: 1024, durationMs }
    const sent = await worker.call<Work>('send', load)
    const taken = await worker.call<Work>('consume', { ...load, count: sent.operations })
    return {
      'enqueue CPU µs': sent.cpuMicros / sent.operations,
      'receive + ack CPU µs': taken.cpuMicros / taken.operations,
      'CPU µs/message': (sent.cpuMicros + taken.cpuMicros) / sent.operations,
    }
  }
  await run(context.warmUpMs)
  return { worker, rssBytes, run: () => run(context.roundMs) }
}

async function measureSubject(context: BenchContext, subject: Subject): Promise<readonly Measure[]> {
  await using stack = new AsyncDisposableStack()
  const store = await filledStore(context, subject)
  const deep = await traffic(context, subject, store.path)
  stack.use(deep.worker)
  const flat = await traffic(context, subject, newFolder(context))
  stack.use(flat.worker)
  const [atDepth = [], atZero = []] = await interleave(context.rounds, [
    { label: 'deep', run: deep.run },
    { label: 'flat', run: flat.run },
  ])
  const messages = depth(context).toLocaleString('en')
  return [
    {
      name: `rate at depth ${messages} vs depth 0, by CPU`,
      subject: subject.label,
      goal: atLeast(0.8, 0.95),
      samples: ratios(atZero, atDepth, (round) => round['CPU µs/message']),
      details: { ...medians('depth 0', atZero), ...medians('at depth', atDepth) },
    },
    {
      name: `RSS added by ${messages} waiting messages`,
      subject: subject.label,
      goal: atMost(100, 30, 'MiB'),
      samples: [store.rssAddedBytes / MIB],
      details: { 'just opened: RSS over an empty store, MiB': (deep.rssBytes - flat.rssBytes) / MIB },
    },
  ]
}

/** Speed and memory of a long queue compared with a short one. */
export const row: Row = {
  id: 'depth',
  title: 'rate at depth 1 M vs depth 0; RSS added by 1 M waiting messages',
  run: async (context) => {
    const measures: Measure[] = []
    for (const subject of context.subjects) measures.push(...(await measureSubject(context, subject)))
    return measures
  },
}
