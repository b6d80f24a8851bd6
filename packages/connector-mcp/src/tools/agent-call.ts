import { randomUUID } from 'node:crypto'

import { decodeText, encodeText, isBrokerError } from '@signalbox/broker-core'
import type { AgentDirectory, AgentReply } from '@signalbox/broker-core/ports'
import type { Steps } from '@signalbox/http-kit'
import type { MemberBytes } from '@signalbox/http-kit/internal'
import {
  allSteps,
  checkJson,
  fairTurns,
  hopsProblem,
  isJsonRpc,
  LARGE_BODY_BYTES,
  memberText,
  trimmedJson,
} from '@signalbox/http-kit/internal'

import { agentNotFound } from './agents.ts'
import { cancelledOutcome, withProgress } from './define-tool.ts'
import { confirmation, failure, jsonReplyOutcome } from './results.ts'
import type { ToolContext, ToolOutcome } from './tool.ts'

/**
 * Returns a JSON-RPC request as bytes. It is made before the call waits: a waiting call must not hold the values of its
 * arguments, which can take many times the memory of their text.
 */
export function requestBody(method: string, params: object | undefined): Uint8Array {
  return encodeText(JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method, params }))
}

/** Returns a request as {@link requestBody} does, with the source text of its params: to write ten megabytes anew takes 200 ms. */
export function requestBodyOf(method: string, paramsText: string): Uint8Array {
  const head = `{"jsonrpc":"2.0","id":"${randomUUID()}","method":${JSON.stringify(method)},"params":`
  return encodeText(`${head}${paramsText}}`)
}

/** One JSON-RPC request of a tool to an agent. */
interface AgentToolCall {
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
        traced: context.traced,
        hops: context.hops,
        signal: context.signal,
        callerGone: context.callerGone,
        hold: context.hold,
        acceptOnly: !blocking,
        timeoutMs: timeoutSeconds === undefined ? undefined : milliseconds(timeoutSeconds),
      }),
    )
    if (blocking || !reply.executed) {
      const held = counted(reply, context)
      const outcome = agentOutcome(agentId, held)
      if (held.body.byteLength <= LARGE_BODY_BYTES) return allSteps(outcome)
      const { account, clientId } = context.broker.caller
      return await fairTurns.steps(account ?? clientId, outcome)
    }
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

/** Characters of a rejection's body that are shown, enough to see the reason. */
const MAX_SHOWN = 2048

/** An agent's response may have any number of keys, and repeated keys; they are passed on. */
const ANY_KEYS = { maxKeys: 0 }

/**
 * Returns the outcome for an agent's reply: the first matching case, in the same order as on the gateway. The result
 * or error is copied from the source text of the response, so that large numbers and the order of keys are preserved.
 */
export function* agentOutcome(agentId: string, reply: AgentReply): Steps<ToolOutcome> {
  const agent = `agent ${JSON.stringify(agentId)}`
  if (!reply.executed) {
    if (reply.error === 'agent timeout') return agentTimeout(agentId)
    if (reply.failure === 'too_large') {
      return failure(
        `AGENT_UNAVAILABLE: agent response too large: the reply of ${agent} is larger than CONNECTORSA2_A_AGENT_MAX_RESPONSE_BYTES. Ask for less data.`,
      )
    }
    if (reply.failure === 'key_reused') {
      return failure('MESSAGE_ID_REUSED: Another message has this message_id. Use a new one for each message.')
    }
    if (reply.failure === 'unknown') {
      return failure(
        `OUTCOME_UNKNOWN: The ${agent} may have processed the request, and its answer is lost. Check that before you send it again with another message_id.`,
      )
    }
    if (reply.failure === 'busy' && reply.unsent !== true) {
      return failure(
        `AGENT_UNAVAILABLE: The reply of ${agent} was refused: ${reply.error}. The agent may have processed the request: check that before you repeat it.`,
      )
    }
    return failure(`AGENT_UNAVAILABLE: The ${agent} did not process the request: ${reply.error}. Try again later.`)
  }
  if (reply.failure === 'invalid_response') return invalidResponse(agent, responseProblem(reply.status))
  const json = yield* checkJson(reply.body, ANY_KEYS)
  const response = 'members' in json && isJsonRpc(json.members) ? json.members : NO_MEMBERS
  const error = decodeText(response.get('error') ?? NO_BYTES)
  if (error?.startsWith('{') === true) return failure(errorText(error))
  if (reply.status < 200 || reply.status > 299) {
    return failure(
      `AGENT_REJECTED: The ${agent} rejected the request: HTTP ${reply.status} ${(decodeText(reply.body) ?? '').slice(0, MAX_SHOWN)}`,
    )
  }
  if ('problem' in json) return invalidResponse(agent, `the body is ${json.problem}`)
  return jsonReplyOutcome(response.get('result') ?? trimmedJson(reply.body))
}

const NO_MEMBERS: MemberBytes = new Map()
const NO_BYTES = new Uint8Array(0)

function invalidResponse(agent: string, problem: string): ToolOutcome {
  return failure(`INVALID_RESPONSE: invalid response from ${agent}: ${problem}.`)
}

/** @param status 0 without an HTTP response */
function responseProblem(status: number): string {
  if (status === 0) return 'it is not HTTP'
  return `it is an event stream, is incomplete, or is compressed (HTTP ${status})`
}

/** Returns the outcome for an agent, or the broker's Query to it, that exceeded its timeout. */
function agentTimeout(agentId: string): ToolOutcome {
  return failure(
    `AGENT_TIMEOUT: The agent ${JSON.stringify(agentId)} did not answer in time. It may still be working. Repeat the request only if that is safe, and use a larger timeout.`,
  )
}

/** Returns the agent's code, message and data, without other members of its error. */
function errorText(error: string): string {
  const members = ['code', 'message', 'data'].flatMap((key) => {
    const value = memberText(error, key)
    return value === undefined ? [] : [`"${key}":${value}`]
  })
  return `{${members.join(',')}}`
}
