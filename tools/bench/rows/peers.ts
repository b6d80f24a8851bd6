import { markdownTable, median, quantile } from '@signalbox/testkit/figures'

import type { Send, Shape, Way } from '../peers/ways.ts'
import { BATCH, openWays } from '../peers/ways.ts'
import { figure } from '../report.ts'
import type { BenchContext, Measure, Row, Run } from '../row.ts'
import { interleave, medians } from '../row.ts'
import { WORKING_TREE } from '../subject.ts'

/** The number of senders, each of which sends again after its acknowledgement. */
const SENDERS: Readonly<Record<Shape, number>> = { single: 64, batch: 4 }

const LABELS: Readonly<Record<Shape, string>> = { single: '1 message', batch: `batches of ${BATCH}` }

/** The number of messages after which compilers have compiled the hot code. */
const WARM_MESSAGES = 40_000

type Figures = {
  readonly 'CPU µs/message': number
  readonly 'messages/s': number
  readonly 'p50 ms': number
  readonly 'p99 ms': number
}

/** A way with its open and warm senders. */
interface Measured {
  readonly name: string
  readonly shape: Shape
  readonly run: Run<Figures>
}

async function load(senders: readonly Send[], durationMs: number): Promise<{ latencies: number[]; wallMs: number }> {
  const latencies: number[] = []
  const begin = performance.now()
  const repeat = async (send: Send): Promise<void> => {
    for (let sentAt = begin; sentAt - begin < durationMs;) {
      await send()
      const now = performance.now()
      latencies.push(now - sentAt)
      sentAt = now
    }
  }
  await Promise.all(senders.map(repeat))
  return { latencies, wallMs: performance.now() - begin }
}

async function warm(context: BenchContext, way: Way, shape: Shape): Promise<Measured> {
  const senders = await Promise.all(Array.from({ length: SENDERS[shape] }, () => way.open(shape)))
  const messages = shape === 'batch' ? BATCH : 1
  const enough = context.quick ? WARM_MESSAGES / 20 : WARM_MESSAGES
  for (let sent = 0; sent < enough;) sent += (await load(senders, context.warmUpMs / 3)).latencies.length * messages
  const run = async (): Promise<Figures> => {
    await way.clear()
    const before = way.cpuMicros()
    const { latencies, wallMs } = await load(senders, context.roundMs)
    const count = latencies.length * messages
    return {
      'CPU µs/message': (way.cpuMicros() - before) / count,
      'messages/s': count / (wallMs / 1000),
      'p50 ms': quantile(latencies, 0.5),
      'p99 ms': quantile(latencies, 0.99),
    }
  }
  return { name: way.name, shape, run }
}

/** Signalbox and other brokers, each of which is configured to sync a message to the disk before it acknowledges it. */
export const peers: Row = {
  id: 'peers',
  title: 'durable send of 1 KiB to Signalbox, Redis Streams, RabbitMQ and JetStream',
  onRequest: true,
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const measured: Measured[] = []
    for (const way of await openWays(context, stack)) {
      for (const shape of way.shapes) measured.push(await warm(context, way, shape))
    }
    const rounds = await interleave(
      context.rounds,
      measured.map(({ run }) => run),
    )
    const results = measured.map(({ name, shape }, at) => ({ name, shape, rounds: rounds[at] ?? [] }))
    for (const line of tables(results)) context.log(line)
    return results.map((result): Measure => ({
      name: `${result.name}, ${LABELS[result.shape]}: CPU of a durable message`,
      subject: WORKING_TREE.label,
      goal: undefined,
      unit: 'µs',
      samples: result.rounds.map((round) => round['CPU µs/message']),
      details: medians('', result.rounds),
    }))
  },
}

interface Result {
  readonly name: string
  readonly shape: Shape
  readonly rounds: readonly Figures[]
}

const COLUMNS = ['CPU µs/message', 'messages/s', 'p50 ms', 'p99 ms'] as const

/** Returns the tables of `docs/performance.md`, the cheapest way first. */
function tables(results: readonly Result[]): readonly string[] {
  const lines: string[] = []
  for (const [shape, label] of Object.entries(LABELS)) {
    const rows = results
      .filter((result) => result.shape === shape)
      .map(({ name, rounds }) => ({ name, values: COLUMNS.map((column) => median(rounds.map((one) => one[column]))) }))
      .toSorted(({ values: [a = 0] }, { values: [b = 0] }) => a - b)
    const head = [label, 'CPU, µs/message', 'messages/s', 'p50, ms', 'p99, ms']
    const cells = rows.map(({ name, values }) => [name].concat(values.map((value) => figure(value))))
    lines.push('', ...markdownTable(head, cells))
  }
  return lines
}
