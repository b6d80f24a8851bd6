import { randomUUID } from 'node:crypto'

import { encodeText, isBrokerError } from '@signalbox/broker-core'
import { hopsProblem } from '@signalbox/http-kit'

import type { AgentDirectory, AgentReply } from '../agent-directory.ts'
import { agentOutcome, agentTimeout } from './agent-reply.ts'
import { agentNotFound } from './agents.ts'
import { confirmation, failure } from './results.ts'
import type { ToolContext, ToolOutcome } from './tool.ts'
import { cancelledOutcome, withProgress } from './waiting.ts'

/**
 * Returns a JSON-RPC request as bytes. It is made before the call waits: a waiting call must not hold the values of its
 * arguments, which can take many times the memory of their text.
 */
export function requestBody(method: string, params: object | undefined): Uint8Array {
  return encodeText(JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method, params }))
}

/** One JSON-RPC request of a tool to an agent. */
export interface AgentToolCall {
  readonly agentId: string
  readonly method: string
  /** The JSON-RPC request for the agent. */
  readonly body: Uint8Array
  readonly timeoutSeconds: number | undefined
  readonly blocking: boolean
}

/** Sends a request to an agent, and returns its reply as the outcome of the tool. */
export async function forward(
  agents: AgentDirectory,
  { agentId, method, body, timeoutSeconds, blocking }: AgentToolCall,
  context: ToolContext,
): Promise<ToolOutcome> {
  context.broker.authorize('call', 'agents', agentId)
  const problem = hopsProblem(context.hops)
  if (problem !== undefined) return failure(`AGENT_LOOP: The call was refused: ${problem}.`)
  if (!(await agents.get(agentId))) return agentNotFound(agents, agentId, context)
  const awaited = `the reply of agent ${JSON.stringify(agentId)}`
  try {
    const reply = await withProgress(context, awaited, () =>
      agents.request(agentId, body, {
        method,
        caller: context.broker.caller,
        headers: context.traceContext,
        hops: context.hops,
        signal: context.signal,
        callerGone: context.callerGone,
        hold: context.hold,
        acceptOnly: !blocking,
        ...(timeoutSeconds === undefined ? {} : { timeoutMs: milliseconds(timeoutSeconds) }),
      }),
    )
    if (blocking || !reply.executed) return agentOutcome(agentId, counted(reply, context))
    return confirmation(`Request accepted for agent ${JSON.stringify(agentId)}; its reply will not be returned.`, {
      agent_id: agentId,
      accepted: true,
    })
  } catch (error) {
    if (isBrokerError(error, 'REQUEST_TIMEOUT') || isBrokerError(error, 'NO_SUBSCRIBER')) return agentTimeout(agentId)
    return cancelledOutcome(error, context, awaited)
  }
}

/** The size of a reply's text and of the answer with it, in which the text is a JSON string, in sizes of the reply. */
const COPIES = 3

/** Counts what a reply becomes before the answer with it is written, or stored as the result of a task. */
function counted(reply: AgentReply, { hold }: ToolContext): AgentReply {
  const refusal = reply.body.byteLength === 0 ? undefined : hold?.charge(COPIES * reply.body.byteLength)
  if (refusal === undefined) return reply
  return { ...reply, executed: false, error: `server busy: ${refusal.message}`, failure: 'busy' }
}

function milliseconds(seconds: number): number {
  return Math.min(Math.max(1, Math.round(seconds * 1000)), Number.MAX_SAFE_INTEGER)
}
