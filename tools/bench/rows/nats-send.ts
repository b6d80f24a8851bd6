import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'

import type { MeasuredProcess } from '../../harness/measured-process.ts'
import type { Alternative } from '../rounds.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import type { Work, WorkFigures } from '../workers/work.ts'
import { figures } from '../workers/work.ts'
import { newFolder, startNatsSender, startWorker } from '../processes.ts'
import { WORKING_TREE } from '../subject.ts'
import { atLeast } from './goals.ts'

const BYTES = 1024
const PRODUCERS = 256
const NODES = [1, 2, 3]

async function startSender(context: BenchContext, url: string, open: string): Promise<MeasuredProcess> {
  const worker = startNatsSender(context, url)
  await worker.call(open, {})
  return worker
}

/** All nodes send at the same time; their rates add up. */
async function sendTogether(workers: readonly MeasuredProcess[], durationMs: number): Promise<WorkFigures> {
  const members = Math.ceil(PRODUCERS / workers.length)
  const works = await Promise.all(
    workers.map((worker) => worker.call<Work>('send', { members, bytes: BYTES, durationMs })),
  )
  const operations = works.reduce((sum, work) => sum + work.operations, 0)
  const cpuMicros = works.reduce((sum, work) => sum + work.cpuMicros, 0)
  const wallMs = Math.max(...works.map((work) => work.wallMs))
  return figures({ operations, cpuMicros, wallMs })
}

/** The embedded engine does the same work for comparison: its CPU compares, but its rate depends on the disk. */
async function startEmbedded(context: BenchContext): Promise<MeasuredProcess> {
  const worker = startWorker(context, 'broker', WORKING_TREE)
  await worker.call('open', { path: newFolder(context) })
  return worker
}

async function sendEmbedded(worker: MeasuredProcess, durationMs: number): Promise<WorkFigures> {
  return figures(await worker.call<Work>('send', { channel: 'bench', members: PRODUCERS, bytes: BYTES, durationMs }))
}

/**
 * The cost of the engine over JetStream's own publisher. The server runs on the load's core; the nodes share the
 * measured one.
 */
export const row: Row = {
  id: 'nats-send',
  title: 'engine-nats: send rate of one node, 1 KiB, 256 producers, vs a bare nats.js JetStream publisher',
  run: async (context): Promise<readonly Measure[]> => {
    if (NATS_SERVER === undefined) {
      context.log('   skipped: nats-server is not installed')
      return []
    }
    await using stack = new AsyncDisposableStack()
    const nats = stack.use(await NatsServer.start())
    const bare = stack.use(await startSender(context, nats.url, 'openBare'))
    const nodes: MeasuredProcess[] = []
    for (const _ of NODES) nodes.push(stack.use(await startSender(context, nats.url, 'openBroker')))
    const embedded = stack.use(await startEmbedded(context))
    const alternatives: Alternative<WorkFigures>[] = [
      { label: 'bare', run: () => sendTogether([bare], context.roundMs) },
      { label: 'embedded', run: () => sendEmbedded(embedded, context.roundMs) },
      ...NODES.map((count) => ({
        label: `${count} nodes`,
        run: () => sendTogether(nodes.slice(0, count), context.roundMs),
      })),
    ]
    for (const worker of [bare, ...nodes]) await sendTogether([worker], context.warmUpMs)
    await sendEmbedded(embedded, context.warmUpMs)
    const [yardstick = [], beside = [], ...measured] = await interleave(context.rounds, alternatives)
    const [one = []] = measured
    const details = Object.assign(
      medians('bare', yardstick),
      medians('embedded', beside),
      ...measured.map((rounds, i) => medians(`${NODES[i]} nodes`, rounds)),
    ) as Record<string, number>
    return [
      {
        name: 'send through the Broker on NATS, rate vs a bare publisher',
        subject: 'working tree',
        goal: atLeast(0.7, 0.9),
        samples: ratios(one, yardstick, (round) => round['messages/s']),
        details,
      },
      {
        name: 'send through the Broker on NATS, CPU vs on the embedded engine',
        subject: 'working tree',
        goal: undefined,
        unit: '×',
        samples: ratios(one, beside, (round) => round['CPU µs/message']),
        details: {},
      },
    ]
  },
}
