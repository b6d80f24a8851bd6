import { join } from 'node:path'

import type { MeasuredProcess } from '../../harness/measured-process.ts'
import { newFolder, startWorker, startYardstick } from '../processes.ts'
import type { Alternative } from '../rounds.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { BenchContext, Row } from '../row.ts'
import type { Subject } from '../subject.ts'
import type { Work, WorkFigures } from '../workers/work.ts'
import { figures } from '../workers/work.ts'
import { atLeast } from './goals.ts'

const CHANNEL = 'bench.enqueue'
const BYTES = 1024
const PRODUCERS = 64

async function producer(context: BenchContext, subject: Subject, call: string) {
  const worker = startWorker(context, 'broker', subject)
  await worker.call('open', { path: newFolder(context) })
  const put = (durationMs: number) =>
    worker.call<Work>(call, { channel: CHANNEL, members: PRODUCERS, bytes: BYTES, durationMs })
  await put(context.warmUpMs)
  const run = async () => {
    const work = await put(context.roundMs)
    await worker.call('purge', { channel: CHANNEL })
    return figures(work)
  }
  return { worker, run }
}

async function rawLog(context: BenchContext): Promise<{ worker: MeasuredProcess; run: () => Promise<WorkFigures> }> {
  const worker = startYardstick(context, 'raw-log')
  await worker.call('open', { path: join(newFolder(context), 'raw.log') })
  const append = (durationMs: number) => worker.call<Work>('append', { producers: PRODUCERS, bytes: BYTES, durationMs })
  await append(context.warmUpMs)
  return { worker, run: async () => figures(await append(context.roundMs)) }
}

/** The cost of durability beyond the bytes. Both sides wait for the same disk, so this row compares rates. */
export const row: Row = {
  id: 'enqueue',
  title: 'in-process durable enqueue 1 KiB, 64 producers, vs async raw append + fdatasync',
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const raw = await rawLog(context)
    stack.use(raw.worker)
    const alternatives: Alternative<WorkFigures>[] = [{ label: 'raw log', run: raw.run }]
    for (const subject of context.subjects) {
      for (const call of ['send', 'enginePut']) {
        const { worker, run } = await producer(context, subject, call)
        stack.use(worker)
        alternatives.push({ label: `${subject.label} ${call}`, run })
      }
    }
    const [yardstick = [], ...measured] = await interleave(context.rounds, alternatives)
    return context.subjects.map((subject, i) => {
      const broker = measured[2 * i] ?? []
      const engine = measured[2 * i + 1] ?? []
      return {
        name: 'durable send through the Broker, rate vs raw log',
        subject: subject.label,
        goal: atLeast(0.5, 0.75),
        samples: ratios(broker, yardstick, (round) => round['messages/s']),
        details: { ...medians('Broker', broker), ...medians('engine', engine), ...medians('raw log', yardstick) },
      }
    })
  },
}
