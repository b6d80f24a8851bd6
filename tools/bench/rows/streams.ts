import { Buffer } from 'node:buffer'

import { median } from '@signalbox/testkit/figures'
import { postBytes } from '@signalbox/testkit/http-connection'

import { newFolder, startCeHost, startWorker } from '../processes.ts'
import { agentCall, SseReaders, startWithAgent } from '../registered-agent.ts'
import type { BenchContext, Measure, Row, Run } from '../row.ts'
import { atMost, compare, inSequence, medians } from '../row.ts'
import type { Subject } from '../subject.ts'
import type { Publishing } from '../workers/ce-host.ts'
import type { Work } from '../workers/work.ts'

const SUBSCRIBERS = 500

type Figures = { readonly 'CPU µs/delivery': number }

/** The measure of a fan-out: the CPU time for each subscriber. */
function perDelivery(name: string, rounds: readonly Figures[]): Omit<Measure, 'subject'> {
  return {
    name,
    goal: atMost(12, 6, 'µs'),
    samples: rounds.map((round) => round['CPU µs/delivery']),
    details: medians('', rounds),
  }
}

interface FanOut {
  readonly subscribe: string
  readonly publish: string
  readonly publishes: number
}

async function fanOutWorker(
  context: BenchContext,
  stack: AsyncDisposableStack,
  subject: Subject,
  { subscribe, publish, publishes }: FanOut,
) {
  const worker = stack.use(startWorker(context, 'broker', subject))
  const load = { channel: 'bench.fan-out', subscribers: SUBSCRIBERS, publishes, bytes: 1024 }
  await worker.call('open', { path: newFolder(context) })
  await worker.call(subscribe, load)
  const run = async () => {
    const { operations, wallMs, cpuMicros } = await worker.call<Work>(publish, load)
    return { 'CPU µs/delivery': cpuMicros / operations, 'deliveries/s': operations / (wallMs / 1000) }
  }
  await run()
  return run
}

/** The cost of one more subscriber. */
export const fanOut: Row = {
  id: 'fan-out',
  title: 'fan-out in process to 500 subscribers: CPU per delivery',
  run: (context) =>
    compare<Figures>(context, {
      open: async (subject, stack) => [
        await fanOutWorker(context, stack, subject, {
          subscribe: 'subscribeEvents',
          publish: 'fanOutEvents',
          publishes: context.quick ? 200 : 2000,
        }),
        await fanOutWorker(context, stack, subject, {
          subscribe: 'subscribeStore',
          publish: 'fanOutStore',
          publishes: context.quick ? 50 : 200,
        }),
      ],
      judge: ([events = [], store = []]) => [
        perDelivery(`fan-out of an events channel to ${SUBSCRIBERS} subscribers`, events),
        perDelivery(`fan-out of an events store to ${SUBSCRIBERS} subscribers`, store),
      ],
    }),
}

const CHANNEL = 'bench.fan-out'

/** Events a second. */
const RATES = [100, 1000]

async function openFanOut(context: BenchContext, subject: Subject, stack: AsyncDisposableStack, load: Publishing) {
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
export const fanOutSse: Row = {
  id: 'fan-out-sse',
  title: 'fan-out over server-sent events to 500 subscribers: CPU per delivery',
  run: (context) =>
    compare<Figures>(context, {
      open: async (subject, stack) => {
        const runs: Run<Figures>[] = []
        for (const perSecond of RATES) {
          const events = context.quick ? perSecond : perSecond * 3
          runs.push(await openFanOut(context, subject, stack, { channel: CHANNEL, events, perSecond, bytes: 256 }))
        }
        return runs
      },
      judge: (own) => own.map((rounds, i) => perDelivery(`${RATES[i]} events/s to ${SUBSCRIBERS} subscribers`, rounds)),
    }),
}

const KIB = 1024
/** The number of streams opened and closed before the measurement, so that it excludes code, pools and caches. */
const WARM_UP = 200

/** The memory that each of many open streams adds to the server, in KiB, after a collection. */
async function kibPerStream(context: BenchContext, subject: Subject, kind: 'a2a' | 'mcp'): Promise<number> {
  const count = context.quick ? 500 : 4_000
  await using stack = new AsyncDisposableStack()
  const { server, url: agentUrl } = await startWithAgent(context, subject, stack, {
    nodeArgs: ['--expose-gc'],
    // An address may have half of the streams of the process.
    env: { CONNECTORSMCP_MAX_STREAMS: '0', LIMITS_PROCESS_STREAMS: String(4 * count) },
  })
  const { host } = new URL(server.http)
  const url = kind === 'a2a' ? agentUrl : `${server.http}/mcp`
  const request =
    kind === 'a2a'
      ? postBytes(url, agentCall('message/stream'))
      : Buffer.from(`GET /mcp HTTP/1.1\r\nHost: ${host}\r\nAccept: text/event-stream\r\n\r\n`)
  const open = (streams: number) => SseReaders.open({ url, count: streams, request, mark: 'data: {' })
  const warm = await open(WARM_UP)
  warm[Symbol.dispose]()
  const before = await server.process.rssBytes()
  stack.use(await open(count))
  return ((await server.process.rssBytes()) - before) / count / KIB
}

async function measureIdle(context: BenchContext, subject: Subject, kind: 'a2a' | 'mcp') {
  const samples: number[] = []
  // Each round runs in a new process, whose memory is stable: three rounds are enough.
  for (let round = 0; round < Math.min(3, context.rounds); round++) {
    samples.push(await kibPerStream(context, subject, kind))
  }
  return {
    name: kind === 'a2a' ? 'idle A2A stream, both sides, RSS' : 'idle SSE stream (GET /mcp), RSS',
    goal: kind === 'a2a' ? atMost(70, 56, 'KiB') : atMost(30, 24, 'KiB'),
    samples,
    details: { 'KiB a stream': median(samples) },
  }
}

/** The memory of an idle stream. */
export const idleStreams: Row = {
  id: 'idle-streams',
  title: 'idle SSE stream; idle A2A stream (both sides)',
  run: (context) =>
    inSequence(context, async (subject) => [
      await measureIdle(context, subject, 'a2a'),
      await measureIdle(context, subject, 'mcp'),
    ]),
}
