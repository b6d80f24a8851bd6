import { decodeText } from '@signalbox/broker-core'

import type { AgentReply } from '../agent-directory.ts'
import { confirmation, failure } from './results.ts'
import type { ToolOutcome } from './tool.ts'

/** Enough of a refusal's body to see what the agent minds. */
const MAX_SHOWN = 2048

/** What an agent's reply becomes: the first row that fits, as on the gateway (A3). */
export function agentOutcome(agentId: string, reply: AgentReply): ToolOutcome {
  const agent = `agent ${JSON.stringify(agentId)}`
  if (!reply.executed) {
    return failure(
      reply.error === 'agent timeout'
        ? agentTimeout(agentId).text
        : `AGENT_UNAVAILABLE: The ${agent} did not process the request: ${reply.error}. Try again later, or use another agent.`,
    )
  }
  const body = decodeText(reply.body)
  const json = body === undefined ? undefined : parse(body)
  const response = isObject(json?.value) ? json.value : {}
  if (isObject(response['error']) && response['jsonrpc'] === '2.0') return failure(errorText(response['error']))
  if (reply.status < 200 || reply.status > 299) {
    return failure(
      `AGENT_REJECTED: The ${agent} rejected the request: HTTP ${reply.status}. ${(body ?? '').slice(0, MAX_SHOWN)}`.trimEnd(),
    )
  }
  if (!json) return failure(`INVALID_RESPONSE: The ${agent} answered with something that is not JSON.`)
  const value = response['jsonrpc'] === '2.0' && 'result' in response ? response['result'] : json.value
  return confirmation(JSON.stringify(value), { reply: value })
}

/** The agent, or the broker's Query to it, ran out of time. */
export function agentTimeout(agentId: string): ToolOutcome {
  return failure(
    `AGENT_TIMEOUT: The agent ${JSON.stringify(agentId)} did not answer in time. It may still be working: repeat the request only if doing it twice does no harm, with a larger timeout.`,
  )
}

/** The agent's own words, and nothing else it put there (M13). */
function errorText({ code, message, data }: Record<string, unknown>): string {
  return JSON.stringify({ code, message, data })
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
