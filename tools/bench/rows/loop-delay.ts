import type { LoopDelay } from '../../harness/instrument.ts'
import { toolCall } from '../../harness/mcp.ts'
import { newFolder, openLoad, startServer, startWorker } from '../processes.ts'
import { interleave, medians } from '../rounds.ts'
import type { BenchContext, Row } from '../row.ts'
import type { Subject } from '../subject.ts'
import { atMost } from './goals.ts'

const CHANNEL = 'bench.loop-delay'

function delays({ p50Ms, p99Ms, maxMs }: LoopDelay) {
  return { 'p50 ms': p50Ms, 'p99 ms': p99Ms, 'max ms': maxMs }
}

/** 64 producers in process; each sends again after its acknowledgement. */
async function inProcess(context: BenchContext, subject: Subject) {
  const worker = startWorker(context, 'broker', subject)
  await worker.call('open', { path: newFolder(context) })
  const send = (durationMs: number) => worker.call('send', { channel: CHANNEL, members: 64, bytes: 1024, durationMs })
  await send(context.warmUpMs)
  const run = async () => delays((await worker.loopDelayDuring(() => send(context.roundMs))).delay)
  return { process: worker, run }
}

/** 64 MCP clients; each sends again after its acknowledgement. */
async function overMcp(context: BenchContext, subject: Subject) {
  const server = await startServer(context, subject)
  const json = toolCall('queue_send', { channel: CHANNEL, body: 'a'.repeat(1024) })
  const load = await openLoad(context, server.process, `${server.http}/mcp`, json)
  const run = async () => delays((await server.process.loopDelayDuring(load.run)).delay)
  return { process: server, run }
}

/** The delay that durable writes cause in the event loop. */
export const row: Row = {
  id: 'loop-delay',
  title: 'event-loop delay p99 under durable load',
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const alternatives = []
    for (const subject of context.subjects) {
      for (const [label, start] of [
        ['in process', inProcess],
        ['over MCP', overMcp],
      ] as const) {
        const { process, run } = await start(context, subject)
        stack.use(process)
        alternatives.push({ label, subject, run })
      }
    }
    const measured = await interleave(context.rounds, alternatives)
    return alternatives.map(({ label, subject }, i) => {
      const rounds = measured[i] ?? []
      return {
        name: `event-loop delay p99, 64 durable producers ${label}`,
        subject: subject.label,
        goal: atMost(5, 3, 'ms'),
        samples: rounds.map((round) => round['p99 ms']),
        details: medians('', rounds),
      }
    })
  },
}
