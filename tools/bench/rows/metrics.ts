import { toolCall } from '../../harness/mcp.ts'
import { openLoad, startMetricsHost } from '../processes.ts'
import { interleave, medians } from '../rounds.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import type { Subject } from '../subject.ts'
import { atMost } from './goals.ts'

async function measureSubject(context: BenchContext, subject: Subject): Promise<Measure> {
  await using stack = new AsyncDisposableStack()
  // Passes every meter, a message and a request each time, and touches no disk.
  const json = toolCall('events_publish', { channel: 'bench.metrics', body: 'a'.repeat(64) })
  const alternatives = []
  for (const mode of ['on', 'off'] as const) {
    const { process, url } = await startMetricsHost(context, subject, mode)
    stack.use(process)
    const load = await openLoad(context, process, `${url}/mcp`, json)
    stack.defer(() => load.close())
    alternatives.push({ label: mode, run: load.run })
  }
  const [on = [], off = []] = await interleave(context.rounds, alternatives)
  return {
    name: 'metrics per request (no authentication, log line or authorization yet)',
    subject: subject.label,
    goal: atMost(20, 12, 'µs'),
    samples: on.map((round, i) => round['CPU µs/request'] - (off[i]?.['CPU µs/request'] ?? Number.NaN)),
    details: { ...medians('metrics on', on), ...medians('metrics off', off) },
  }
}

/** What watching costs. The goal is for all four together; the others come later. */
export const row: Row = {
  id: 'metrics',
  title: 'authentication (cached) + metrics + log + authorization per request, together: metrics so far',
  run: async (context) => {
    const measures: Measure[] = []
    for (const subject of context.subjects) measures.push(await measureSubject(context, subject))
    return measures
  },
}
