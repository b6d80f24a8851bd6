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

/** A call as an official client makes it. */
export interface NativeCall {
  readonly json: string
  readonly headers: Readonly<Record<string, string>>
}

/** Returns a call in A2A 1.0 or 0.3, with the header that the product's own dialect does not have. */
export function nativeCall(version: '1.0' | '0.3', operation: 'send' | 'stream'): NativeCall {
  const headers = { 'A2A-Version': version }
  if (version === '0.3') return { json: agentCall(`message/${operation}`), headers }
  const message = { role: 'ROLE_USER', messageId: 'm', parts: [{ text: 'a'.repeat(256) }] }
  const method = operation === 'send' ? 'SendMessage' : 'SendStreamingMessage'
  return { json: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { message } }), headers }
}

/** The options of a registration whose agent speaks A2A 1.0. */
export const SPEAKS_10 = { a2a: { wire: '1.0' } }

/**
 * Starts an agent off the measured core and registers it at the subject's server as `bench`; resolves with both, and
 * its address at the server.
 */
export async function startWithAgent(
  context: BenchContext,
  subject: Subject,
  stack: AsyncDisposableStack,
  options: Parameters<typeof startServer>[2] = {},
  card: object = {},
): Promise<{ agent: MeasuredProcess; agentUrl: string; server: SignalboxServer; url: string }> {
  const { process: agent, url: agentUrl } = await startAgent()
  stack.use(agent)
  const env = { CONNECTORSA2_A_AGENT_MAX_CONCURRENCY: '100000', ...options.env }
  const server = stack.use(await startServer(context, subject, { ...options, env }))
  const response = await fetch(`${server.http}/agents/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...card, agent_id: 'bench', name: 'Bench', url: agentUrl }),
  })
  if (!response.ok) throw new Error(`the agent was not registered: ${response.status} ${await response.text()}`)
  return { agent, agentUrl, server, url: `${server.http}/a2a/bench` }
}
