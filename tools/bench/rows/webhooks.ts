import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import type { MeasuredProcess } from '../../harness/measured-process.ts'
import { startWebhookSender } from '../processes.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { Work, WorkFigures } from '../workers/work.ts'
import { figures } from '../workers/work.ts'

const SETUP = { members: 64, bytes: 1_024 }
const EVENTS = 20_000
const FEW_EVENTS = 2_000

/** The deliveries after which V8 has compiled the hot code. */
const WARM_DELIVERIES = 20_000

/** Opens an endpoint on the load's core that agrees to webhooks and accepts each delivery. */
async function openEndpoint(): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer((request, response) => {
    request.resume()
    request.once('end', () => response.writeHead(204, { 'WebHook-Allowed-Origin': '*' }).end())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function startSender(
  context: BenchContext,
  url: string,
  open: 'openBare' | 'openWebhooks',
): Promise<MeasuredProcess> {
  const worker = startWebhookSender(context, url, open)
  await worker.call(open, { ...SETUP, events: context.quick ? FEW_EVENTS : EVENTS })
  return worker
}

async function send(worker: MeasuredProcess, durationMs: number): Promise<WorkFigures> {
  return figures(await worker.call<Work>('send', { ...SETUP, durationMs }))
}

async function warm(context: BenchContext, worker: MeasuredProcess): Promise<void> {
  const enough = context.quick ? WARM_DELIVERIES / 10 : WARM_DELIVERIES
  for (let done = 0; done < enough;) {
    done += (await worker.call<Work>('send', { ...SETUP, durationMs: context.warmUpMs })).operations
  }
}

/** The cost of a durable, signed delivery over that of a signed request. */
export const row: Row = {
  id: 'webhooks',
  title: 'webhooks: signed deliveries of 1 KiB from an events store, 64 in flight, vs a loop of signed undici POSTs',
  run: async (context): Promise<readonly Measure[]> => {
    await using stack = new AsyncDisposableStack()
    const endpoint = stack.use(await openEndpoint())
    const bare = stack.use(await startSender(context, endpoint.url, 'openBare'))
    const webhooks = stack.use(await startSender(context, endpoint.url, 'openWebhooks'))
    for (const worker of [bare, webhooks]) await warm(context, worker)
    const [yardstick = [], measured = []] = await interleave(context.rounds, [
      { label: 'bare', run: () => send(bare, context.roundMs) },
      { label: 'webhooks', run: () => send(webhooks, context.roundMs) },
    ])
    return [
      {
        name: 'webhook delivery, CPU vs a signed POST',
        subject: 'working tree',
        goal: { must: 1.5, aim: 1.25, better: 'less', unit: '×' },
        samples: ratios(measured, yardstick, (round) => round['CPU µs/message']),
        details: { ...medians('webhooks', measured), ...medians('bare', yardstick) },
      },
    ]
  },
}
