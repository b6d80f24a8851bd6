import { decodeText } from '@signalbox/broker-core'
import { isJsonObject, memberText, readJson } from '@signalbox/http-kit'

import type { AgentReply } from '../agent-directory.ts'
import { confirmation, failure } from './results.ts'
import type { ToolOutcome } from './tool.ts'

/** Enough of a refusal's body to see what the agent minds. */
const MAX_SHOWN = 2048

/**
 * What an agent's reply becomes: the first row that fits, as on the gateway (A3). What the agent said is cut out of its
 * response as it stands, so that big numbers and the order of keys come through (A4).
 */
export function agentOutcome(agentId: string, reply: AgentReply): ToolOutcome {
  const agent = `agent ${JSON.stringify(agentId)}`
  if (!reply.executed) {
    if (reply.error === 'agent timeout') return agentTimeout(agentId)
    return failure(`AGENT_UNAVAILABLE: The ${agent} did not process the request: ${reply.error}. Try again later.`)
  }
  const text = decodeText(reply.body) ?? ''
  const json = readJson(text)
  const response = isJsonObject(json?.value) && json.value['jsonrpc'] === '2.0' ? json.value : {}
  if (isJsonObject(response['error'])) return failure(errorText(memberText(text, 'error') ?? ''))
  if (reply.status < 200 || reply.status > 299) {
    return failure(
      `AGENT_REJECTED: The ${agent} rejected the request: HTTP ${reply.status} ${text.slice(0, MAX_SHOWN)}`,
    )
  }
  if (!json) return failure(`INVALID_RESPONSE: The ${agent} answered with something that is not JSON.`)
  const result = Object.hasOwn(response, 'result') ? memberText(text, 'result') : undefined
  return result === undefined
    ? confirmation(text.trim(), { reply: json.value })
    : confirmation(result, { reply: response['result'] })
}

/** The agent, or the broker's Query to it, ran out of time. */
export function agentTimeout(agentId: string): ToolOutcome {
  return failure(
    `AGENT_TIMEOUT: The agent ${JSON.stringify(agentId)} did not answer in time. It may still be working: repeat the request only if doing it twice does no harm, with a larger timeout.`,
  )
}

/** The agent's code, message and data, and nothing else that it put there (M13). */
function errorText(error: string): string {
  const members = ['code', 'message', 'data'].flatMap((key) => {
    const value = memberText(error, key)
    return value === undefined ? [] : [`"${key}":${value}`]
  })
  return `{${members.join(',')}}`
}
