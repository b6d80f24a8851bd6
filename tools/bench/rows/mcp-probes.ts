import type { Session } from '../../harness/host-sessions.ts'
import { HostSessions } from '../../harness/host-sessions.ts'
import { postBytes } from '../../harness/keep-alive-connection.ts'
import { discovery, statelessCall } from '../../harness/stateless-mcp.ts'
import type { RequestFigures } from '../processes.ts'
import { startServer, warmLoad } from '../processes.ts'
import type { Row } from '../row.ts'
import type { Alternative } from '../rounds.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import { atMost } from './goals.ts'
import { CHEAP_CALL, emptyQueue } from './tool-call.ts'

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
export const row: Row = {
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
