import { toolCall } from '../../harness/mcp.ts'
import { guard } from '../guarded.ts'
import { openLoad, startMetricsHost, startServer } from '../processes.ts'
import { interleave, medians } from '../rounds.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import type { Subject } from '../subject.ts'
import { atMost } from './goals.ts'

async function measureSubject(context: BenchContext, subject: Subject): Promise<Measure> {
  await using stack = new AsyncDisposableStack()
  // Passes every meter with one message and one request per call, without the disk.
  const json = toolCall('events_publish', { channel: 'bench.metrics', body: 'a'.repeat(64) })
  const { env, headers } = await guard(context)
  const alternatives = []
  for (const mode of ['on', 'off'] as const) {
    const { process, url } = await startMetricsHost(context, subject, mode)
    stack.use(process)
    const load = await openLoad(context, process, `${url}/mcp`, json)
    stack.defer(() => load.close())
    alternatives.push({ label: `metrics ${mode}`, run: load.run })
  }
  for (const [label, options] of [
    ['guarded', { env }],
    ['open', {}],
  ] as const) {
    const server = stack.use(await startServer(context, subject, options))
    const load = await openLoad(context, server.process, `${server.http}/mcp`, json, label === 'guarded' ? headers : {})
    stack.defer(() => load.close())
    alternatives.push({ label, run: load.run })
  }
  const [on = [], off = [], closed = [], open = []] = await interleave(context.rounds, alternatives)
  const cost = (rounds: typeof on, i: number): number => rounds[i]?.['CPU µs/request'] ?? Number.NaN
  return {
    name: 'authentication (cached), authorization, a log line and metrics, per request',
    subject: subject.label,
    goal: atMost(20, 12, 'µs'),
    samples: on.map((_, i) => cost(on, i) - cost(off, i) + cost(closed, i) - cost(open, i)),
    details: {
      ...medians('metrics on', on),
      ...medians('metrics off', off),
      ...medians('guarded', closed),
      ...medians('open', open),
    },
  }
}

/** The cost of protection and metrics: metrics on a bare host, the rest on the server, each with and without. */
export const row: Row = {
  id: 'metrics',
  title: 'authentication (cached) + metrics + log + authorization per request, together',
  run: async (context) => {
    const measures: Measure[] = []
    for (const subject of context.subjects) measures.push(await measureSubject(context, subject))
    return measures
  },
}
