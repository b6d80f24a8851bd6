import type { Script, ScriptedAgent } from '../agents.ts'
import { startAgent } from '../agents.ts'
import type { GatewayHost, HostOptions } from '../gateway-host.ts'
import { openGateway } from '../gateway-host.ts'

/** The answer to a request of the HTTP+JSON binding. */
export interface RestAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface Asking {
  readonly body?: string
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

export interface RestHost {
  readonly host: GatewayHost
  readonly agent: ScriptedAgent
  /** Sends a request below the agent's path, such as `GET /tasks`. A body has the type application/json. */
  readonly send: (request: string, asking?: Asking) => Promise<Response>
  readonly ask: (request: string, asking?: Asking) => Promise<RestAnswer>
}

/** A gateway with one agent, `agent-1`. */
export async function openRest(
  script?: Script,
  options: HostOptions = {},
  a2a: object = { wire: '1.0' },
  agentId = 'agent-1',
): Promise<RestHost> {
  const host = await openGateway(options)
  const agent = await startAgent(script)
  const card = { agent_id: 'agent-1', name: 'agent-1', url: agent.url, a2a }
  await host.registry.register(card, { clientId: 'owner' })
  const send: RestHost['send'] = (request, { body, headers, signal } = {}) => {
    const [method = '', path = ''] = request.split(' ')
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    return fetch(`${host.base}/a2a/${agentId}${path}`, {
      method,
      headers: { ...type, ...headers },
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal }),
    })
  }
  return {
    host,
    agent,
    send,
    ask: async (request, asking) => {
      const response = await send(request, asking)
      return { status: response.status, headers: response.headers, text: await response.text() }
    },
  }
}

/** A JSON-RPC request as the agent got it. */
export interface Called {
  readonly jsonrpc: string
  readonly id: unknown
  readonly method: string
  readonly params: unknown
}

/** Returns the next request that the agent got. */
export function called({ asked }: ScriptedAgent): Called {
  const body = asked.shift()?.body ?? 'null'
  return JSON.parse(body) as Called
}
