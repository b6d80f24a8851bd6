import type { MeasuredProcess } from '../../harness/measured-process.ts'
import { startWebhookSender } from '../processes.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import type { Alternative } from '../rounds.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { Work, WorkFigures } from '../workers/work.ts'
import { figures } from '../workers/work.ts'
import type { Subject } from '../subject.ts'
import { WORKING_TREE } from '../subject.ts'
import { openEndpoint } from '../webhook-endpoint.ts'

const SETUP = { members: 64, bytes: 1_024 }
const EVENTS = 20_000
const FEW_EVENTS = 2_000

/**
 * The parts of a round. The alternatives run interleaved part by part: a busy machine changes its speed within a round, and
 * positions are stored at a fixed rate, so the cost of a delivery depends on the speed.
 */
const PARTS = 5

/** The deliveries after which V8 has compiled the hot code. */
const WARM_DELIVERIES = 20_000

async function startSender(
  context: BenchContext,
  subject: Subject,
  url: string,
  open: 'openBare' | 'openWebhooks',
): Promise<MeasuredProcess> {
  const worker = startWebhookSender(context, subject, url, open)
  await worker.call(open, { ...SETUP, events: context.quick ? FEW_EVENTS : EVENTS })
  return worker
}

/** A part of a round, by name as `interleave` wants it. */
type Part = Readonly<Record<keyof Work, number>>

async function sendPart(worker: MeasuredProcess, roundMs: number): Promise<Part> {
  return { ...(await worker.call<Work>('send', { durationMs: roundMs / PARTS })) }
}

/** Returns the measurements of whole rounds. */
function wholeRounds(parts: readonly Part[]): WorkFigures[] {
  const sum = (of: readonly Part[], name: keyof Work): number => of.reduce((total, part) => total + part[name], 0)
  return Array.from({ length: parts.length / PARTS }, (_, round) => {
    const own = parts.slice(round * PARTS, (round + 1) * PARTS)
    const [operations, wallMs, cpuMicros] = [sum(own, 'operations'), sum(own, 'wallMs'), sum(own, 'cpuMicros')]
    return figures({ operations, wallMs, cpuMicros })
  })
}

async function warm(context: BenchContext, worker: MeasuredProcess): Promise<void> {
  const enough = context.quick ? WARM_DELIVERIES / 10 : WARM_DELIVERIES
  for (let done = 0; done < enough;) {
    done += (await worker.call<Work>('send', { durationMs: context.warmUpMs })).operations
  }
}

/** The cost of a durable, signed delivery over that of a signed request. */
export const row: Row = {
  id: 'webhooks',
  title: 'webhooks: signed deliveries of 1 KiB from an events store, 64 in flight, vs a loop of signed undici POSTs',
  run: async (context): Promise<readonly Measure[]> => {
    await using stack = new AsyncDisposableStack()
    const endpoint = stack.use(await openEndpoint())
    const bare = stack.use(await startSender(context, WORKING_TREE, endpoint.url, 'openBare'))
    await warm(context, bare)
    const alternatives: Alternative<Part>[] = [{ label: 'bare', run: () => sendPart(bare, context.roundMs) }]
    for (const subject of context.subjects) {
      const webhooks = stack.use(await startSender(context, subject, endpoint.url, 'openWebhooks'))
      await warm(context, webhooks)
      alternatives.push({ label: subject.label, run: () => sendPart(webhooks, context.roundMs) })
    }
    const parts = await interleave(context.rounds * PARTS, alternatives)
    const [yardstick = [], ...measured] = parts.map(wholeRounds)
    return context.subjects.map((subject, i) => ({
      name: 'webhook delivery, CPU vs a signed POST',
      subject: subject.label,
      goal: { must: 1.5, aim: 1.25, better: 'less', unit: '×' },
      samples: ratios(measured[i] ?? [], yardstick, (round) => round['CPU µs/message']),
      details: { ...medians('webhooks', measured[i] ?? []), ...medians('bare', yardstick) },
    }))
  },
}
