import { ClosedLoop, KeepAliveConnection, postBytes } from '@signalbox/testkit/http-connection'
import type { LoopDelay } from '@signalbox/testkit/instrument'
import { toolCall } from '@signalbox/testkit/mcp-client'
import { pinMainThread } from '@signalbox/testkit/process-cpu'

import { newFolder, openLoad, startServer, startWorker } from '../processes.ts'
import type { BenchContext, Row } from '../row.ts'
import { atMost, compare, medians } from '../row.ts'
import type { Subject } from '../subject.ts'
import { poll, sendAtPace } from './long-poll.ts'

const CHANNEL = 'bench.loop-delay'

function delays({ p50Ms, p99Ms, maxMs }: LoopDelay) {
  return { 'p50 ms': p50Ms, 'p99 ms': p99Ms, 'max ms': maxMs }
}

/** 64 producers in process; each sends again after its acknowledgement. */
async function inProcess(context: BenchContext, subject: Subject, stack: AsyncDisposableStack) {
  const worker = stack.use(startWorker(context, 'broker', subject))
  await worker.call('open', { path: newFolder(context) })
  const send = (durationMs: number) => worker.call('send', { channel: CHANNEL, members: 64, bytes: 1024, durationMs })
  await send(context.warmUpMs)
  return async () => delays((await worker.loopDelayDuring(() => send(context.roundMs))).delay)
}

/** 64 MCP clients; each sends again after its acknowledgement. */
async function overMcp(context: BenchContext, subject: Subject, stack: AsyncDisposableStack) {
  const server = stack.use(await startServer(context, subject))
  const json = toolCall('queue_send', { channel: CHANNEL, body: 'a'.repeat(1024) })
  const load = await openLoad(context, stack, server.process, `${server.http}/mcp`, json)
  return async () => delays((await server.process.loopDelayDuring(load)).delay)
}

const POLLS = 200
/** The share of the highest rate that a server can be planned for. */
const PLANNED = 0.8
/** Messages after which V8 has compiled most of the hot code. */
const WARM_MESSAGES = 20_000

/**
 * 64 MCP clients send and 200 wait for messages: as fast as they can, and at a share of that rate.
 * @param threads `together`: the event loop and the writer have one core, so that the time of the writer is a delay of the
 * event loop. `apart`: the event loop has a core, and the writer any.
 */
async function withLongPolls(
  context: BenchContext,
  subject: Subject,
  stack: AsyncDisposableStack,
  threads: 'together' | 'apart',
) {
  const server = stack.use(await startServer(context, subject))
  if (threads === 'apart' && context.core !== undefined) pinMainThread(server.process.pid, context.core)
  const url = `${server.http}/mcp`
  const request = postBytes(url, toolCall('queue_send', { channel: CHANNEL, body: 'a'.repeat(1024) }))
  const end = new AbortController()
  let received = 0
  const polls = Array.from({ length: POLLS }, () => poll(url, CHANNEL, end.signal, () => received++))
  stack.defer(async () => {
    end.abort()
    await Promise.all(polls)
  })
  const loop = stack.adopt(await ClosedLoop.open(url, request), (open) => open.close())
  const enough = context.quick ? WARM_MESSAGES / 4 : WARM_MESSAGES
  for (let sent = 0; sent < enough;) sent += (await loop.run(context.warmUpMs / 3)).requests
  let highest = 0
  const measured = async (load: () => Promise<unknown>) => {
    const before = received
    const begin = performance.now()
    const cpuBefore = await server.process.cpuMicros()
    const { delay } = await server.process.loopDelayDuring(load)
    const cpu = (await server.process.cpuMicros()) - cpuBefore
    const count = received - before
    const perSecond = count / ((performance.now() - begin) / 1000)
    return { ...delays(delay), 'messages/s': perSecond, 'CPU µs/message': cpu / count }
  }
  return [
    async () => {
      const figures = await measured(() => loop.run(context.roundMs))
      highest = figures['messages/s']
      return figures
    },
    async () => {
      if (highest === 0) highest = (await measured(() => loop.run(context.roundMs)))['messages/s']
      const perSecond = highest * PLANNED
      const senders = await Promise.all(Array.from({ length: 64 }, () => KeepAliveConnection.open(url)))
      const pace = { perSecond, total: Math.round((context.roundMs / 1000) * perSecond) }
      const figures = await measured(() => sendAtPace(senders, pace, () => request))
      for (const sender of senders) sender.close()
      return figures
    },
  ]
}

const LOADS = [
  { name: '64 durable producers in process', goal: atMost(5, 3, 'ms') },
  { name: '64 durable producers over MCP', goal: atMost(5, 3, 'ms') },
  { name: '64 producers and 200 long polls over MCP, as fast as they can', goal: atMost(12, 5, 'ms') },
  { name: 'the same at 80 % of that rate', goal: atMost(5, 3, 'ms') },
  { name: 'the same as fast as they can, the writer thread on any core', goal: atMost(12, 5, 'ms') },
  { name: 'the same at 80 % of that rate, the writer thread on any core', goal: atMost(5, 3, 'ms') },
] as const

/** The delay that durable writes, and many waiting calls, cause in the event loop. */
export const loopDelay: Row = {
  id: 'loop-delay',
  title: 'event-loop delay p99 under durable load',
  run: (context) =>
    compare<Readonly<Record<string, number>>>(context, {
      open: async (subject, stack) => [
        await inProcess(context, subject, stack),
        await overMcp(context, subject, stack),
        ...(await withLongPolls(context, subject, stack, 'together')),
        ...(await withLongPolls(context, subject, stack, 'apart')),
      ],
      judge: (own) =>
        own.map((rounds, i) => ({
          name: `event-loop delay p99, ${LOADS[i]?.name ?? ''}`,
          goal: LOADS[i]?.goal,
          samples: rounds.map((round) => round['p99 ms'] ?? Number.NaN),
          details: medians('', rounds),
        })),
    }),
}
