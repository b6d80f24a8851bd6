import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'
import { ClosedLoop, postBytes } from '@signalbox/testkit/http-connection'
import { toolCall } from '@signalbox/testkit/mcp-client'
import type { MeasuredProcess } from '@signalbox/testkit/measured-process'
import { cpuMicrosOf } from '@signalbox/testkit/process-cpu'

import { newFolder, startNatsSender, startServer, startWorker } from '../processes.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import { atLeast, interleave, medians, ratios } from '../row.ts'
import { WORKING_TREE } from '../subject.ts'
import type { Work, WorkFigures } from '../workers/work.ts'
import { figures } from '../workers/work.ts'

const BYTES = 1024
const SEND_PRODUCERS = 256
const NODES = [1, 2, 3]

/** Runs a row on a separate nats-server; a machine without nats-server skips it. */
function onNats(
  run: (context: BenchContext, nats: NatsServer, stack: AsyncDisposableStack) => Promise<readonly Measure[]>,
): Row['run'] {
  return async (context) => {
    if (NATS_SERVER === undefined) {
      context.log('   skipped: nats-server is not installed')
      return []
    }
    await using stack = new AsyncDisposableStack()
    return await run(context, stack.use(await NatsServer.start()), stack)
  }
}

async function startSender(context: BenchContext, url: string, open: string): Promise<MeasuredProcess> {
  const worker = startNatsSender(context, url)
  await worker.call(open, {})
  return worker
}

/** All nodes send at the same time; their rates add up. */
async function sendTogether(workers: readonly MeasuredProcess[], durationMs: number): Promise<WorkFigures> {
  const members = Math.ceil(SEND_PRODUCERS / workers.length)
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
  return figures(
    await worker.call<Work>('send', { channel: 'bench', members: SEND_PRODUCERS, bytes: BYTES, durationMs }),
  )
}

/**
 * The cost of the engine over JetStream's own publisher. The server runs on the load's core; the nodes share the
 * measured one.
 */
export const natsSend: Row = {
  id: 'nats-send',
  title: 'engine-nats: send rate of one node, 1 KiB, 256 producers, vs a bare nats.js JetStream publisher',
  run: onNats(async (context, nats, stack) => {
    const bare = stack.use(await startSender(context, nats.url, 'openBare'))
    const nodes: MeasuredProcess[] = []
    for (const _ of NODES) nodes.push(stack.use(await startSender(context, nats.url, 'openBroker')))
    const embedded = stack.use(await startEmbedded(context))
    const alternatives = [
      () => sendTogether([bare], context.roundMs),
      () => sendEmbedded(embedded, context.roundMs),
      ...NODES.map((count) => () => sendTogether(nodes.slice(0, count), context.roundMs)),
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
  }),
}

/** The same in process as over HTTP, so that the concurrency is equal. */
const HOP_PRODUCERS = 64
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
  const loop = await ClosedLoop.open(url, postBytes(url, json), HOP_PRODUCERS)
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
  const send = (durationMs: number) => worker.call<Work>('send', { members: HOP_PRODUCERS, bytes: BYTES, durationMs })
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
export const natsHops: Row = {
  id: 'nats-hops',
  title: 'CPU of a 1 KiB message on each hop: client → node → NATS → node → client',
  run: onNats(async (context, nats, stack) => {
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
    const hops = [published, sent, received]
    for (const hop of hops) await hop.warmUp()
    const [publishes = [], sends = [], receives = []] = await interleave(
      context.rounds,
      hops.map(({ run }) => run),
    )
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
  }),
}
