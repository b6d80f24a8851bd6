import { startAgent, startServer } from './processes.ts'
import type { MeasuredProcess } from '../harness/measured-process.ts'
import type { SignalboxServer } from '../harness/signalbox-server.ts'
import type { BenchContext } from './row.ts'
import type { Subject } from './subject.ts'

/** The JSON-RPC text of a call to an agent. */
export function agentCall(method: 'message/send' | 'message/stream'): string {
  const parts = [{ kind: 'text', text: 'a'.repeat(256) }]
  return JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method,
    params: { message: { kind: 'message', role: 'user', messageId: 'm', parts } },
  })
}

/**
 * Starts an agent off the measured core and registers it at the subject's server as `bench`; resolves with both, and
 * its address at the server.
 */
export async function startWithAgent(
  context: BenchContext,
  subject: Subject,
  stack: AsyncDisposableStack,
  options: Parameters<typeof startServer>[2] = {},
): Promise<{ agent: MeasuredProcess; agentUrl: string; server: SignalboxServer; url: string }> {
  const { process: agent, url: agentUrl } = await startAgent()
  stack.use(agent)
  const env = { CONNECTORSA2_A_AGENT_MAX_CONCURRENCY: '100000', ...options.env }
  const server = stack.use(await startServer(context, subject, { ...options, env }))
  const response = await fetch(`${server.http}/agents/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agent_id: 'bench', name: 'Bench', url: agentUrl }),
  })
  if (!response.ok) throw new Error(`the agent was not registered: ${response.status} ${await response.text()}`)
  return { agent, agentUrl, server, url: `${server.http}/a2a/bench` }
}
