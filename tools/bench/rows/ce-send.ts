import { toolCall } from '../../harness/mcp.ts'
import type { RequestFigures } from '../processes.ts'
import { openLoad, startServer } from '../processes.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import type { Alternative } from '../rounds.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { Subject } from '../subject.ts'
import { atMost } from './goals.ts'

const CHANNEL = 'bench.send'
const BODY = 'a'.repeat(1024)
const ATTRIBUTES = { specversion: '1.0', id: 'bench-1', source: '/bench', type: 'bench.event' }

/** The same durable send of 1 KiB in every form that a client can use. The others are compared with the first one. */
const SENDS = [
  { label: 'MCP', path: '/mcp', json: toolCall('queue_send', { channel: CHANNEL, body: BODY }), headers: {} },
  {
    label: 'structured',
    path: `/ce/queue/send?channel=${CHANNEL}&deduplicate=false`,
    json: JSON.stringify({ ...ATTRIBUTES, datacontenttype: 'text/plain', data: BODY }),
    headers: { 'Content-Type': 'application/cloudevents+json' },
  },
  {
    label: 'structured JSON',
    path: `/ce/queue/send?channel=${CHANNEL}&deduplicate=false`,
    json: JSON.stringify({ ...ATTRIBUTES, data: { text: BODY } }),
    headers: { 'Content-Type': 'application/cloudevents+json' },
  },
  {
    label: 'binary',
    path: `/ce/queue/send?channel=${CHANNEL}&deduplicate=false`,
    json: BODY,
    headers: {
      'Content-Type': 'text/plain',
      ...Object.fromEntries(Object.entries(ATTRIBUTES).map(([name, value]) => [`ce-${name}`, value])),
    },
  },
] as const

async function sends(
  context: BenchContext,
  subject: Subject,
  stack: AsyncDisposableStack,
): Promise<readonly Alternative<RequestFigures>[]> {
  const server = stack.use(await startServer(context, subject))
  const alternatives: Alternative<RequestFigures>[] = []
  for (const { label, path, json, headers } of SENDS) {
    const load = await openLoad(context, server.process, server.http + path, json, headers)
    stack.defer(() => load.close())
    alternatives.push({ label: `${subject.label} ${label}`, run: load.run })
  }
  return alternatives
}

/** The cost of a durable send over `/ce` compared with the same send over `/mcp`. */
export const row: Row = {
  id: 'ce-send',
  title: 'durable send 1 KiB over CloudEvents vs the same over MCP',
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const alternatives: Alternative<RequestFigures>[] = []
    for (const subject of context.subjects) alternatives.push(...(await sends(context, subject, stack)))
    const measured = await interleave(context.rounds, alternatives)
    return context.subjects.flatMap((subject, i): readonly Measure[] => {
      const [mcp = [], ...others] = measured.slice(i * SENDS.length, (i + 1) * SENDS.length)
      return others.map((rounds, at) => ({
        name: `${SENDS[at + 1]?.label ?? ''} send 1 KiB, CPU vs queue_send`,
        subject: subject.label,
        goal: atMost(1.15, 1, '×'),
        samples: ratios(rounds, mcp, (figures) => figures['CPU µs/request']),
        details: { ...medians('CloudEvents', rounds), ...medians('MCP', mcp) },
      }))
    })
  },
}
