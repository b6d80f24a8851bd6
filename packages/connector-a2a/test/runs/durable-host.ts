import type { ServerResponse } from 'node:http'

import type { GatewayHost, HostOptions } from '../gateway-host.ts'
import { openGateway } from '../gateway-host.ts'
import type { ScriptedAgent, Script } from '../agents.ts'
import { startAgent } from '../agents.ts'

/** The agent that keeps the answers of its calls. */
export const DURABLE = 'durable'

/** Another agent at the same url, which keeps none. */
export const PLAIN = 'plain'

export interface DurableHost {
  readonly host: GatewayHost
  readonly agent: ScriptedAgent
}

/** A gateway with an agent of A2A 1.0 that is registered twice: as {@link DURABLE} and as {@link PLAIN}. */
export async function openDurable(script: Script, options: HostOptions = {}): Promise<DurableHost> {
  const host = await openGateway(options)
  const agent = await startAgent(script)
  await registerDurable(host, agent.url)
  return { host, agent }
}

export async function registerDurable(host: GatewayHost, url: string, a2a: object = {}): Promise<void> {
  const owner = { clientId: 'owner' }
  const wire = { wire: '1.0', ...a2a }
  await host.registry.register({ agent_id: DURABLE, name: 'd', url, a2a: { ...wire, durable: true } }, owner)
  await host.registry.register({ agent_id: PLAIN, name: 'p', url, a2a: wire }, owner)
}

/** A request of A2A 1.0 with a text message. */
export function send(text: string, messageId: string, id: unknown = 1, method = 'SendMessage'): object {
  const message = { messageId, role: 'ROLE_USER', parts: [{ text }] }
  return { jsonrpc: '2.0', id, method, params: { message } }
}

/** The same message in A2A 0.3. */
export function send03(text: string, messageId: string, method = 'message/send'): object {
  const message = { kind: 'message', messageId, role: 'user', parts: [{ kind: 'text', text }] }
  return { jsonrpc: '2.0', id: 'old', method, params: { message } }
}

/** Answers each message with its number, as a message of A2A 1.0. */
export function counting(): Script {
  let count = 0
  return ({ body }, response) => {
    const { id = null } = JSON.parse(body) as { id?: unknown }
    const message = { messageId: `a${++count}`, role: 'ROLE_AGENT', parts: [{ text: `answer ${count}` }] }
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { message } }))
  }
}

/** An event of a task of A2A 1.0: its state, or an artifact with this text. */
export function taskEvent(
  taskId: string,
  event: { readonly state?: string; readonly artifact?: string; readonly task?: string },
): string {
  const ids = { taskId, contextId: 'c1' }
  const result =
    event.task !== undefined
      ? { task: { id: taskId, contextId: 'c1', status: { state: `TASK_STATE_${event.task}` } } }
      : event.artifact === undefined
        ? { statusUpdate: { ...ids, status: { state: `TASK_STATE_${event.state}` } } }
        : { artifactUpdate: { ...ids, artifact: { artifactId: 'a', parts: [{ text: event.artifact }] }, append: true } }
  return `data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`
}

export function beginStream(response: ServerResponse): ServerResponse {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  return response
}
