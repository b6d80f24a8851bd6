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

async function send(worker: MeasuredProcess, durationMs: number): Promise<WorkFigures> {
  return figures(await worker.call<Work>('send', { durationMs }))
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
    const alternatives: Alternative<WorkFigures>[] = [{ label: 'bare', run: () => send(bare, context.roundMs) }]
    for (const subject of context.subjects) {
      const webhooks = stack.use(await startSender(context, subject, endpoint.url, 'openWebhooks'))
      await warm(context, webhooks)
      alternatives.push({ label: subject.label, run: () => send(webhooks, context.roundMs) })
    }
    const [yardstick = [], ...measured] = await interleave(context.rounds, alternatives)
    return context.subjects.map((subject, i) => ({
      name: 'webhook delivery, CPU vs a signed POST',
      subject: subject.label,
      goal: { must: 1.5, aim: 1.25, better: 'less', unit: '×' },
      samples: ratios(measured[i] ?? [], yardstick, (round) => round['CPU µs/message']),
      details: { ...medians('webhooks', measured[i] ?? []), ...medians('bare', yardstick) },
    }))
  },
}
