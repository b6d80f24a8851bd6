import { join } from 'node:path'

import { depth, FILLED_CHANNEL, filledStore } from '../filled-store.ts'
import { newFolder, startWorker, startYardstick } from '../processes.ts'
import type { BenchContext, Measure, Row, Run } from '../row.ts'
import { atLeast, atMost, compare, inSequence, interleave, medians, ratios } from '../row.ts'
import type { Subject } from '../subject.ts'
import type { Work, WorkFigures } from '../workers/work.ts'
import { figures } from '../workers/work.ts'

const ENQUEUE_CHANNEL = 'bench.enqueue'
const BYTES = 1024
const PRODUCERS = 64

async function producer(context: BenchContext, stack: AsyncDisposableStack, subject: Subject, call: string) {
  const worker = stack.use(startWorker(context, 'broker', subject))
  await worker.call('open', { path: newFolder(context) })
  const put = (durationMs: number) =>
    worker.call<Work>(call, { channel: ENQUEUE_CHANNEL, members: PRODUCERS, bytes: BYTES, durationMs })
  await put(context.warmUpMs)
  return async () => {
    const work = await put(context.roundMs)
    await worker.call('purge', { channel: ENQUEUE_CHANNEL })
    return figures(work)
  }
}

async function rawLog(context: BenchContext, stack: AsyncDisposableStack): Promise<Run<WorkFigures>> {
  const worker = stack.use(startYardstick(context, 'raw-log'))
  await worker.call('open', { path: join(newFolder(context), 'raw.log') })
  const append = (durationMs: number) => worker.call<Work>('append', { producers: PRODUCERS, bytes: BYTES, durationMs })
  await append(context.warmUpMs)
  return async () => figures(await append(context.roundMs))
}

/** The cost of durability beyond the bytes. Both sides wait for the same disk, so this enqueue compares rates. */
export const enqueue: Row = {
  id: 'enqueue',
  title: 'in-process durable enqueue 1 KiB, 64 producers, vs async raw append + fdatasync',
  run: (context) =>
    compare(context, {
      yardsticks: async (stack) => [await rawLog(context, stack)],
      open: async (subject, stack) => [
        await producer(context, stack, subject, 'send'),
        await producer(context, stack, subject, 'enginePut'),
      ],
      judge: ([broker = [], engine = []], [raw = []]) => [
        {
          name: 'durable send through the Broker, rate vs raw log',
          goal: atLeast(0.5, 0.75),
          samples: ratios(broker, raw, (round) => round['messages/s']),
          details: { ...medians('Broker', broker), ...medians('engine', engine), ...medians('raw log', raw) },
        },
      ],
    }),
}

const RECEIVE_CHANNEL = 'bench.receive-ack'
const CONSUMERS = 64
const MAX_DRAIN_MS = 60_000

/** @param entries The number of entries of channel settings, none of which is for the queue */
async function consumer(context: BenchContext, stack: AsyncDisposableStack, subject: Subject, entries = 0) {
  const worker = stack.use(startWorker(context, 'broker', subject))
  await worker.call('open', { path: newFolder(context), entries })
  const fillAndDrain = async (durationMs: number) => {
    const load = { channel: RECEIVE_CHANNEL, members: CONSUMERS, bytes: 1024 }
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
  return () => fillAndDrain(context.roundMs)
}

/** The rate of consumers against producers: 64 of each, one message at a time, each ack durable. */
export const receiveAck: Row = {
  id: 'receive-ack',
  title: 'receive + ack rate vs enqueue rate',
  run: (context) =>
    compare(context, {
      open: async (subject, stack) => [await consumer(context, stack, subject)],
      judge: ([rounds = []]) => [
        {
          name: 'receive + ack vs enqueue, by CPU',
          goal: atLeast(0.7, 1),
          samples: rounds.map((round) => round['enqueue CPU µs/message'] / round['receive + ack CPU µs/message']),
          details: medians('', rounds),
        },
      ],
    }),
}

const DEPTH_MEMBERS = 64
const MIB = 1024 * 1024

/** A worker on a store that sends for a round and then receives as many messages from the queue's head. */
async function traffic(context: BenchContext, stack: AsyncDisposableStack, subject: Subject, path: string) {
  const worker = stack.use(startWorker(context, 'broker', subject))
  await worker.call('open', { path })
  const rssBytes = await worker.rssBytes()
  const run = async (durationMs: number) => {
    const load = { channel: FILLED_CHANNEL, members: DEPTH_MEMBERS, bytes: 1024, durationMs }
    const sent = await worker.call<Work>('send', load)
    const taken = await worker.call<Work>('consume', { ...load, count: sent.operations })
    return {
      'enqueue CPU µs': sent.cpuMicros / sent.operations,
      'receive + ack CPU µs': taken.cpuMicros / taken.operations,
      'CPU µs/message': (sent.cpuMicros + taken.cpuMicros) / sent.operations,
    }
  }
  await run(context.warmUpMs)
  return { rssBytes, run: () => run(context.roundMs) }
}

async function measureDepth(
  context: BenchContext,
  subject: Subject,
  stack: AsyncDisposableStack,
): Promise<readonly Omit<Measure, 'subject'>[]> {
  const store = await filledStore(context, subject)
  const deep = await traffic(context, stack, subject, store.path)
  const flat = await traffic(context, stack, subject, newFolder(context))
  const [atDepth = [], atZero = []] = await interleave(context.rounds, [deep.run, flat.run])
  const messages = depth(context).toLocaleString('en')
  return [
    {
      name: `rate at depth ${messages} vs depth 0, by CPU`,
      goal: atLeast(0.8, 0.95),
      samples: ratios(atZero, atDepth, (round) => round['CPU µs/message']),
      details: { ...medians('depth 0', atZero), ...medians('at depth', atDepth) },
    },
    {
      name: `RSS added by ${messages} waiting messages`,
      goal: atMost(100, 30, 'MiB'),
      samples: [store.rssAddedBytes / MIB],
      details: { 'just opened: RSS over an empty store, MiB': (deep.rssBytes - flat.rssBytes) / MIB },
    },
  ]
}

const ENTRIES = 1_000

/** The cost of channel settings that do not concern a queue. A checkout without settings measures nothing. */
export const channelSettings: Row = {
  id: 'channel-settings',
  title: 'send, receive and ack with entries of channel settings for other queues vs without entries',
  run: (context) =>
    compare(context, {
      open: async (subject, stack) => [
        await consumer(context, stack, subject, ENTRIES),
        await consumer(context, stack, subject),
      ],
      judge: ([settings = [], plain = []]) => [
        {
          name: `send, receive and ack with ${ENTRIES.toLocaleString('en')} entries vs none, by CPU`,
          goal: atMost(1.02, 1, '×'),
          unit: '×',
          samples: ratios(settings, plain, (round) => totalCpu(round)),
          details: { ...medians('entries', settings), ...medians('none', plain) },
        },
      ],
    }),
}

function totalCpu(round: Readonly<Record<string, number>>): number {
  return (round['enqueue CPU µs/message'] ?? Number.NaN) + (round['receive + ack CPU µs/message'] ?? Number.NaN)
}

/** Speed and memory of a long queue compared with a short one. */
export const depthRow: Row = {
  id: 'depth',
  title: 'rate at depth 1 M vs depth 0; RSS added by 1 M waiting messages',
  run: (context) => inSequence(context, (subject, stack) => measureDepth(context, subject, stack)),
}
