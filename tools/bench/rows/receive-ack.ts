import { newFolder, startWorker } from '../processes.ts'
import { interleave, medians } from '../rounds.ts'
import type { BenchContext, Row } from '../row.ts'
import type { Subject } from '../subject.ts'
import type { Work } from '../workers/work.ts'
import { atLeast } from './goals.ts'

const CHANNEL = 'bench.receive-ack'
const MEMBERS = 64
const MAX_DRAIN_MS = 60_000

async function consumer(context: BenchContext, subject: Subject) {
  const worker = startWorker(context, 'broker', subject)
  await worker.call('open', { path: newFolder(context) })
  const fillAndDrain = async (durationMs: number) => {
    const load = { channel: CHANNEL, members: MEMBERS, bytes: 1024 }
    const sent = await worker.call<Work>('send', { ...load, durationMs })
    const taken = await worker.call<Work>('receiveAndAck', { ...load, durationMs: MAX_DRAIN_MS })
    if (taken.operations !== sent.operations) {
      throw new Error(`${sent.operations} messages were sent, ${taken.operations} were received and acknowledged`)
    }
    return {
      'enqueue CPU µs/message': sent.cpuMicros / sent.operations,
      'receive + ack CPU µs/message': taken.cpuMicros / taken.operations,
      'enqueue messages/s': sent.operations / (sent.wallMs / 1000),
      'receive + ack messages/s': taken.operations / (taken.wallMs / 1000),
    }
  }
  await fillAndDrain(context.warmUpMs)
  return { worker, run: () => fillAndDrain(context.roundMs) }
}

/** The rate of consumers against producers: 64 of each, one message at a time, each ack durable. */
export const row: Row = {
  id: 'receive-ack',
  title: 'receive + ack rate vs enqueue rate',
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const alternatives = []
    for (const subject of context.subjects) {
      const { worker, run } = await consumer(context, subject)
      stack.use(worker)
      alternatives.push({ label: subject.label, run })
    }
    const measured = await interleave(context.rounds, alternatives)
    return context.subjects.map((subject, i) => {
      const rounds = measured[i] ?? []
      return {
        name: 'receive + ack vs enqueue, by CPU',
        subject: subject.label,
        goal: atLeast(0.7, 1),
        samples: rounds.map((round) => round['enqueue CPU µs/message'] / round['receive + ack CPU µs/message']),
        details: medians('', rounds),
      }
    })
  },
}
