import { toolCall } from '../../harness/mcp.ts'
import { ConsolePages } from '../console-pages.ts'
import { openLoad, startServer } from '../processes.ts'
import type { Alternative } from '../rounds.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import type { Subject } from '../subject.ts'
import { atLeast, atMost } from './goals.ts'

const CHANNEL = 'bench.shown'
const PAGES = 10
/** Other channels, so that lists have rows. */
const OTHERS = 200

type Figures = {
  readonly 'CPU µs/request': number
  readonly 'p99 ms': number
  readonly 'max ms': number
  readonly 'reads/s': number
}

async function measureSubject(context: BenchContext, subject: Subject): Promise<readonly Measure[]> {
  await using stack = new AsyncDisposableStack()
  const server = stack.use(await startServer(context, subject))
  for (let number = 0; number < OTHERS; number++) {
    const response = await fetch(`${server.api}/api/actions/create_channel`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ channel: `bench.other.${number}`, type: 'queues' }),
    })
    await response.arrayBuffer()
  }
  const load = await openLoad(
    context,
    server.process,
    `${server.http}/mcp`,
    toolCall('events_publish', { channel: CHANNEL, body: 'x'.repeat(1_024) }),
  )
  stack.defer(() => load.close())
  const run = async (count: number): Promise<Figures> => {
    await using pages = new ConsolePages(server.api, count, CHANNEL)
    const begin = performance.now()
    const { delay, result } = await server.process.loopDelayDuring(load.run)
    return {
      'CPU µs/request': result['CPU µs/request'],
      'p99 ms': delay.p99Ms,
      'max ms': delay.maxMs,
      'reads/s': pages.requests / ((performance.now() - begin) / 1_000),
    }
  }
  const alternatives: Alternative<Figures>[] = [
    { label: 'none', run: () => run(0) },
    { label: 'open', run: () => run(PAGES) },
  ]
  const [none = [], open = []] = await interleave(context.rounds, alternatives)
  const common = { subject: subject.label, details: { ...medians('none', none), ...medians('ten pages', open) } }
  return [
    {
      ...common,
      name: 'CPU of a send with no page of the console vs with ten open',
      goal: atLeast(0.95, 0.98),
      samples: ratios(none, open, (figures) => figures['CPU µs/request']),
    },
    {
      ...common,
      name: 'event-loop delay p99 that ten open pages add under load',
      goal: atMost(5, 2, 'ms'),
      samples: open.map((figures, round) => figures['p99 ms'] - (none[round]?.['p99 ms'] ?? 0)),
      details: {},
    },
  ]
}

/** The cost of the console's open pages for senders. */
export const row: Row = {
  id: 'console',
  title: 'ten open pages of the console: CPU of a send, event-loop delay',
  run: async (context) => {
    const measures: Measure[] = []
    for (const subject of context.subjects) measures.push(...(await measureSubject(context, subject)))
    return measures
  },
}
