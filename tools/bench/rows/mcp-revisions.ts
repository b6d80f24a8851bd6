import { toolCall } from '../../harness/mcp.ts'
import { statelessCall } from '../../harness/stateless-mcp.ts'
import type { RequestFigures } from '../processes.ts'
import { openLoad, startServer } from '../processes.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import type { Alternative } from '../rounds.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { Subject } from '../subject.ts'
import { atMost } from './goals.ts'
import { CHEAP_CALL, emptyQueue } from './tool-call.ts'

const { name, args } = CHEAP_CALL

/** The headers that clients send after the handshake, which gives them a session id. */
const AFTER_HANDSHAKE = {
  'MCP-Protocol-Version': '2025-11-25',
  'MCP-Session-Id': '6f9619ff-8b86-4011-b42d-00c04fc964ff',
}

/** The same call as clients of each kind of revision send it. The second is compared with the first. */
const CALLS = [
  { label: '2025-11-25', json: toolCall(name, args), headers: AFTER_HANDSHAKE },
  { label: '2026-07-28', ...statelessCall(name, args) },
] as const

async function calls(
  context: BenchContext,
  subject: Subject,
  stack: AsyncDisposableStack,
): Promise<readonly Alternative<RequestFigures>[]> {
  const server = stack.use(await startServer(context, subject))
  const url = `${server.http}/mcp`
  await emptyQueue(url, {})
  const alternatives: Alternative<RequestFigures>[] = []
  for (const { label, json, headers } of CALLS) {
    const load = await openLoad(context, server.process, url, json, headers)
    stack.defer(() => load.close())
    alternatives.push({ label: `${subject.label} ${label}`, run: load.run })
  }
  return alternatives
}

/** The cost of a call of revision 2026-07-28 compared with the same call of 2025-11-25. */
export const row: Row = {
  id: 'mcp-revisions',
  title: 'cheap `tools/call` of 2026-07-28 vs the same of 2025-11-25',
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const alternatives: Alternative<RequestFigures>[] = []
    for (const subject of context.subjects) alternatives.push(...(await calls(context, subject, stack)))
    const measured = await interleave(context.rounds, alternatives)
    return context.subjects.map((subject, i): Measure => {
      const [older = [], newer = []] = measured.slice(i * CALLS.length, (i + 1) * CALLS.length)
      return {
        name: `${name} on an empty queue, CPU of 2026-07-28 vs 2025-11-25`,
        subject: subject.label,
        goal: atMost(1.05, 1.02, '×'),
        samples: ratios(newer, older, (figures) => figures['CPU µs/request']),
        details: { ...medians('2026-07-28', newer), ...medians('2025-11-25', older) },
      }
    })
  },
}
