import type { Session } from '@signalbox/testkit/http-connection'
import { HostSessions, postBytes } from '@signalbox/testkit/http-connection'
import { discovery, statelessCall, toolCall } from '@signalbox/testkit/mcp-client'

import type { RequestFigures } from '../processes.ts'
import { openLoad, startServer, warmLoad } from '../processes.ts'
import type { Alternative, BenchContext, Measure, Row } from '../row.ts'
import { atMost, interleave, medians, ratios } from '../row.ts'
import type { Subject } from '../subject.ts'
import { CHEAP_CALL, emptyQueue } from './requests.ts'

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
export const mcpRevisions: Row = {
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

/** Requests of one session: a second of a host that sends 60 requests/s. The probe is one of them. */
const REQUESTS = 60

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'harness', version: '1.0.0' } },
})

/** The sessions of hosts by their opening. The others are compared with the first. */
function sessionsOf(url: string): readonly { readonly label: string; readonly session: Session }[] {
  const { json, headers } = statelessCall(CHEAP_CALL.name, CHEAP_CALL.args)
  const calls = (count: number): readonly Buffer[] => Array.from({ length: count }, () => postBytes(url, json, headers))
  const probe = discovery()
  const discover = postBytes(url, probe.json, probe.headers)
  return [
    { label: 'no probe', session: [calls(REQUESTS)] },
    { label: 'server/discover', session: [[discover, ...calls(REQUESTS - 1)]] },
    { label: 'initialize, reconnect', session: [[postBytes(url, INITIALIZE)], calls(REQUESTS - 1)] },
  ]
}

/** The cost of hosts that find out the revision first, compared with the cost of hosts that know it. */
export const mcpProbes: Row = {
  id: 'mcp-probes',
  title: 'a second of MCP hosts with 60 requests/s that probe first vs the same without a probe',
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const alternatives: Alternative<RequestFigures>[] = []
    const labels: string[] = []
    for (const subject of context.subjects) {
      const server = stack.use(await startServer(context, subject))
      const url = `${server.http}/mcp`
      await emptyQueue(url, {})
      for (const { label, session } of sessionsOf(url)) {
        const run = await warmLoad(context, server.process, new HostSessions(url, session))
        alternatives.push({ label: `${subject.label} ${label}`, run })
        labels.push(label)
      }
    }
    const measured = await interleave(context.rounds, alternatives)
    const each = labels.length / context.subjects.length
    return context.subjects.flatMap(({ label: subject }, i) => {
      const [plain = [], ...probing] = measured.slice(i * each, (i + 1) * each)
      return probing.map((rounds, j) => {
        const label = labels[j + 1] ?? ''
        return {
          name: `${REQUESTS} requests on a new connection, CPU with ${label} vs no probe`,
          subject,
          goal: atMost(1.05, 1, '×'),
          samples: ratios(rounds, plain, (figures) => figures['CPU µs/request']),
          details: { ...medians(label, rounds), ...medians('no probe', plain) },
        }
      })
    })
  },
}
