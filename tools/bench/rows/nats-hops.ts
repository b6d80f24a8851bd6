import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'

import { ClosedLoop } from '../../harness/closed-loop.ts'
import { postBytes } from '../../harness/keep-alive-connection.ts'
import { toolCall } from '../../harness/mcp.ts'
import type { MeasuredProcess } from '../../harness/measured-process.ts'
import { cpuMicrosOf } from '../../harness/process-cpu.ts'
import { startNatsSender, startServer } from '../processes.ts'
import { interleave, medians } from '../rounds.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import { WORKING_TREE } from '../subject.ts'
import type { Work } from '../workers/work.ts'

const BYTES = 1024
/** The same in process as over HTTP, so that the concurrency is equal. */
const PRODUCERS = 64
/** The worker's own queue. */
const CHANNEL = 'bench'
/** More messages than a node receives during warm-up and measurement, so that no receive finds the queue empty. */
const BACKLOG = 100_000
/** Messages after which V8 has compiled the hot code. */
const WARM_MESSAGES = 20_000

type Costs = { readonly 'node CPU µs': number; readonly 'nats-server CPU µs': number; readonly 'messages/s': number }

function nodeCost(costs: Costs | undefined): number {
  return costs?.['node CPU µs'] ?? Number.NaN
}

function natsCost(costs: Costs): number {
  return costs['nats-server CPU µs']
}

function measureOf(name: string, rounds: readonly Costs[], cost: (costs: Costs, round: number) => number): Measure {
  return { name, subject: WORKING_TREE.label, goal: undefined, unit: 'µs', samples: rounds.map(cost), details: {} }
}

interface Hop {
  readonly warmUp: () => Promise<void>
  readonly run: () => Promise<Costs>
}

async function overHttp(
  context: BenchContext,
  { process, url, json }: { process: MeasuredProcess; url: string; json: string },
  natsCpu: () => number,
): Promise<Hop & Disposable> {
  const loop = await ClosedLoop.open(url, postBytes(url, json), PRODUCERS)
  const enough = context.quick ? WARM_MESSAGES / 10 : WARM_MESSAGES
  return {
    warmUp: async () => {
      for (let done = 0; done < enough;) done += (await loop.run(context.roundMs / 4)).requests
    },
    run: async () => {
      const before = [await process.cpuMicros(), natsCpu()] as const
      const { requests, wallMs } = await loop.run(context.roundMs)
      return {
        'node CPU µs': ((await process.cpuMicros()) - before[0]) / requests,
        'nats-server CPU µs': (natsCpu() - before[1]) / requests,
        'messages/s': requests / (wallMs / 1000),
      }
    },
    [Symbol.dispose]: () => loop.close(),
  }
}

/** Sends of a Broker without HTTP, which also fill the queue for the receives. */
async function inProcess(worker: MeasuredProcess, context: BenchContext, natsCpu: () => number): Promise<Hop> {
  await worker.call('openBroker', {})
  const send = (durationMs: number) => worker.call<Work>('send', { members: PRODUCERS, bytes: BYTES, durationMs })
  const enough = context.quick ? BACKLOG / 10 : BACKLOG
  return {
    warmUp: async () => {
      for (let done = 0; done < enough;) done += (await send(context.roundMs)).operations
    },
    run: async () => {
      const before = natsCpu()
      const { operations, cpuMicros, wallMs } = await send(context.roundMs)
      return {
        'node CPU µs': cpuMicros / operations,
        'nats-server CPU µs': (natsCpu() - before) / operations,
        'messages/s': operations / (wallMs / 1000),
      }
    },
  }
}

/**
 * The CPU of a message on each hop through a node and NATS. The share of HTTP and MCP is the difference between a node
 * that gets sends over HTTP and one that gets them in process. nats-server runs on the load's core.
 */
export const row: Row = {
  id: 'nats-hops',
  title: 'CPU of a 1 KiB message on each hop: client → node → NATS → node → client',
  run: async (context): Promise<readonly Measure[]> => {
    if (NATS_SERVER === undefined) {
      context.log('   skipped: nats-server is not installed')
      return []
    }
    await using stack = new AsyncDisposableStack()
    const nats = stack.use(await NatsServer.start())
    const natsCpu = (): number => cpuMicrosOf(nats.pid ?? 0)
    const env = { ENGINE: 'nats', NATS_SERVERS: nats.url }
    const node = stack.use(await startServer(context, WORKING_TREE, { env }))
    const sender = stack.use(startNatsSender(context, nats.url))
    const tool = { process: node.process, url: `${node.http}/mcp` }
    const published = await inProcess(sender, context, natsCpu)
    const json = toolCall('queue_send', { channel: CHANNEL, body: 'a'.repeat(BYTES) })
    const sent = stack.use(await overHttp(context, { ...tool, json }, natsCpu))
    const receive = toolCall('queue_receive', { channel: CHANNEL, max_messages: 1, wait_timeout_seconds: 1 })
    const received = stack.use(await overHttp(context, { ...tool, json: receive }, natsCpu))
    for (const hop of [published, sent, received]) await hop.warmUp()
    const hops = [
      { label: 'in process', run: published.run },
      { label: 'send', run: sent.run },
      { label: 'receive', run: received.run },
    ]
    const [publishes = [], sends = [], receives = []] = await interleave(context.rounds, hops)
    return [
      {
        ...measureOf('hop client → node: HTTP and MCP', sends, (round, i) => nodeCost(round) - nodeCost(publishes[i])),
        details: { ...medians('send', sends), ...medians('receive', receives), ...medians('in process', publishes) },
      },
      measureOf('hop node → NATS: Broker, engine and client library', publishes, nodeCost),
      measureOf('hop in nats-server: a send', sends, natsCost),
      measureOf('hop in nats-server: a receive and its ack', receives, natsCost),
      measureOf('hop NATS → node → client: a receive, its ack, MCP and HTTP', receives, nodeCost),
    ]
  },
}
