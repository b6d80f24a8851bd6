import { toolCall } from '@signalbox/testkit/mcp-client'
import { serveHttp } from '@signalbox/testkit/loopback'

import type { RequestFigures } from '../processes.ts'
import { openLoad, startServer } from '../processes.ts'
import type { Goal, Row, Run } from '../row.ts'
import { atMost, interleave, medians, ratios } from '../row.ts'
import type { Subject } from '../subject.ts'
import { WORKING_TREE } from '../subject.ts'

const SEND = toolCall('queue_send', { channel: 'bench.send', body: 'a'.repeat(1024) })

/** The part of all traces that is recorded, with the goal for its cost. */
const RATIOS: readonly (readonly [label: string, ratio: number, goal: Goal | undefined])[] = [
  ['0 %', 0, undefined],
  ['1 %', 0.01, atMost(1.05, 1.03, '×')],
  ['100 %', 1, undefined],
]

/** Returns one ratio of CPU a round. */
function vs(rounds: readonly RequestFigures[], base: readonly RequestFigures[]): number[] {
  return ratios(rounds, base, (figures) => figures['CPU µs/request'])
}

/** The cost of traces for a durable send, with a collector that takes everything. */
export const telemetry: Row = {
  id: 'telemetry',
  title: 'CPU of a durable `queue_send` with traces off, and 0 %, 1 % and 100 % of them recorded',
  async run(context) {
    await using stack = new AsyncDisposableStack()
    const collector = await serveHttp((request, response) => request.resume().once('end', () => response.end()))
    stack.use(collector)
    const load = async (subject: Subject, env: Readonly<Record<string, string>> = {}): Promise<Run<RequestFigures>> => {
      const { http, process } = stack.use(await startServer(context, subject, { env }))
      return openLoad(context, stack, process, `${http}/mcp`, SEND)
    }
    const other = context.subjects.at(-1) ?? WORKING_TREE
    const exporting = RATIOS.map(([, ratio]) => ({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: String(ratio),
    }))
    // All at the same time: a server closes connections on which nothing is sent for 75 s.
    const runs = await Promise.all([
      load(other),
      load(other),
      load(WORKING_TREE),
      ...exporting.map((env) => load(WORKING_TREE, env)),
    ])
    const rounds = await interleave(context.rounds, runs)
    const [base = [], again = [], off = [], ...recorded] = rounds
    const subject = WORKING_TREE.label
    return [
      {
        name: `queue_send 1 KiB, CPU of ${other.label} vs itself: the noise`,
        subject: other.label,
        goal: undefined,
        unit: '×',
        samples: vs(again, base),
        details: medians('', base),
      },
      {
        name: `the same with traces off vs ${other.label}`,
        subject,
        goal: atMost(1.02, 1, '×'),
        samples: vs(off, base),
        details: medians('', off),
      },
      ...recorded.map((rounds, i) => {
        const [label = '', , goal] = RATIOS[i] ?? []
        const name = `the same with ${label} of traces recorded vs off`
        return { name, subject, goal, unit: '×', samples: vs(rounds, off), details: medians('', rounds) }
      }),
    ]
  },
}
