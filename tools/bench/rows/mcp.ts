import type { Session } from '@signalbox/testkit/http-connection'
import { HostSessions, postBytes } from '@signalbox/testkit/http-connection'
import { discovery, statelessCall, toolCall } from '@signalbox/testkit/mcp-client'

import type { RequestFigures } from '../processes.ts'
import { openLoad, startServer, warmLoad } from '../processes.ts'
import type { BenchContext, Row, Run } from '../row.ts'
import { atMost, compare, medians, ratios } from '../row.ts'
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

/** Starts a server that has an empty queue. */
async function serverWithQueue(context: BenchContext, subject: Subject, stack: AsyncDisposableStack) {
  const { http, process } = stack.use(await startServer(context, subject))
  const url = `${http}/mcp`
  await emptyQueue(url, {})
  return { process, url }
}

/** The cost of a call of revision 2026-07-28 compared with the same call of 2025-11-25. */
export const mcpRevisions: Row = {
  id: 'mcp-revisions',
  title: 'cheap `tools/call` of 2026-07-28 vs the same of 2025-11-25',
  run: (context) =>
    compare<RequestFigures>(context, {
      open: async (subject, stack) => {
        const { process, url } = await serverWithQueue(context, subject, stack)
        const runs: Run<RequestFigures>[] = []
        for (const { json, headers } of CALLS) {
          runs.push(await openLoad(context, stack, process, url, json, headers))
        }
        return runs
      },
      judge: ([older = [], newer = []]) => [
        {
          name: `${name} on an empty queue, CPU of 2026-07-28 vs 2025-11-25`,
          goal: atMost(1.05, 1.02, '×'),
          samples: ratios(newer, older, (figures) => figures['CPU µs/request']),
          details: { ...medians('2026-07-28', newer), ...medians('2025-11-25', older) },
        },
      ],
    }),
}

/** Requests of one session: a second of a host that sends 60 requests/s. The probe is one of them. */
const REQUESTS = 60

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'harness', version: '1.0.0' } },
})

function calls(url: string, count: number): readonly Buffer[] {
  const { json, headers } = statelessCall(CHEAP_CALL.name, CHEAP_CALL.args)
  return Array.from({ length: count }, () => postBytes(url, json, headers))
}

function discover(url: string): Buffer {
  const { json, headers } = discovery()
  return postBytes(url, json, headers)
}

/** The sessions of hosts by their opening. The others are compared with the first. */
const SESSIONS: readonly { readonly label: string; readonly session: (url: string) => Session }[] = [
  { label: 'no probe', session: (url) => [calls(url, REQUESTS)] },
  { label: 'server/discover', session: (url) => [[discover(url), ...calls(url, REQUESTS - 1)]] },
  {
    label: 'initialize, reconnect',
    session: (url) => [[postBytes(url, INITIALIZE)], calls(url, REQUESTS - 1)],
  },
]

/** The cost of hosts that find out the revision first, compared with the cost of hosts that know it. */
export const mcpProbes: Row = {
  id: 'mcp-probes',
  title: 'a second of MCP hosts with 60 requests/s that probe first vs the same without a probe',
  run: (context) =>
    compare<RequestFigures>(context, {
      open: async (subject, stack) => {
        const { process, url } = await serverWithQueue(context, subject, stack)
        const runs: Run<RequestFigures>[] = []
        for (const { session } of SESSIONS) {
          runs.push(await warmLoad(context, process, new HostSessions(url, session(url))))
        }
        return runs
      },
      judge: ([plain = [], ...probing]) =>
        probing.map((rounds, i) => {
          const label = SESSIONS[i + 1]?.label ?? ''
          return {
            name: `${REQUESTS} requests on a new connection, CPU with ${label} vs no probe`,
            goal: atMost(1.05, 1, '×'),
            samples: ratios(rounds, plain, (figures) => figures['CPU µs/request']),
            details: { ...medians(label, rounds), ...medians('no probe', plain) },
          }
        }),
    }),
}
