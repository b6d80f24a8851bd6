import type { IncomingHttpHeaders } from 'node:http'

import type { Broker } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'
import type { ConnectionCaller } from '@signalbox/http-kit'
import { hopsOf, hopsProblem, JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { isAgentId } from '@signalbox/registry'

import { forbidden } from './forbidden.ts'

/**
 * Checks a call before its agent is looked up: a refusal must not reveal whether the agent exists.
 * @throws JsonRpcError -32600 for an invalid agent id or too many hops, -32011 if the policy forbids the call
 */
export function assertCallable(
  broker: Broker,
  caller: ConnectionCaller,
  agentId: string,
  headers: IncomingHttpHeaders,
): void {
  assertAgentId(agentId)
  const problem = hopsProblem(hopsOf(headers))
  if (problem !== undefined) throw new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, `invalid request: ${problem}`)
  try {
    caller.handle(broker).authorize('call', 'agents', agentId)
  } catch (error) {
    if (!isBrokerError(error, 'FORBIDDEN')) throw error
    throw forbidden(error)
  }
}

function assertAgentId(agentId: string): void {
  if (isAgentId(agentId)) return
  const given = shownText(agentId, 140)
  throw new JsonRpcError(
    JSON_RPC_CODES.INVALID_REQUEST,
    `invalid request: the agent_id ${given} in the path is invalid; it must be 2 to 128 characters of a-z, 0-9 and -, and must not begin or end with -`,
  )
}
