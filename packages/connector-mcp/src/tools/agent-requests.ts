import { randomUUID } from 'node:crypto'

import { encodeText, isBrokerError } from '@signalbox/broker-core'
import { argument, hopsProblem, shownValue } from '@signalbox/http-kit'
import type { ArgumentProblem } from '@signalbox/http-kit'
import { Type } from 'typebox'

import type { AgentDirectory } from '../agent-directory.ts'
import { agentOutcome, agentTimeout } from './agent-reply.ts'
import { agentId, agentNotFound } from './agents.ts'
import { ACTS } from './annotations.ts'
import { defineTool } from './define-tool.ts'
import { bodiesInText, confirmation, failure } from './results.ts'
import type { Tool, ToolContext, ToolOutcome } from './tool.ts'
import { cancelledOutcome, withProgress } from './waiting.ts'

const SEND = 'message/send'

export function agentSend(agents: AgentDirectory): Tool {
  return defineTool({
    name: 'agent_send',
    title: 'Send a message to an agent',
    description:
      'Sends a text to an agent (A2A message/send) and returns its reply, usually a message or a task, as JSON text. ' +
      'To follow up a task, use agent_query.',
    input: Type.Object(
      {
        agent_id: agentId(),
        message: argument.text('The text for the agent.'),
        blocking: Type.Optional(
          Type.Boolean({
            description: 'If false, does not wait for the reply, which is lost.',
            default: true,
          }),
        ),
        context_id: Type.Optional(argument.text('contextId of a reply, to continue its conversation.')),
        timeout_seconds: Type.Optional(
          Type.Integer({
            description: 'Seconds to wait for the reply; the server has a limit.',
            minimum: 1,
          }),
        ),
      },
      { additionalProperties: false },
    ),
    output: Type.Object({
      reply: Type.Optional(Type.Unknown()),
      bodies: bodiesInText,
      agent_id: Type.Optional(Type.String()),
      accepted: Type.Optional(Type.Boolean({ description: 'Present if blocking is false.' })),
    }),
    annotations: ACTS,
    needs: { action: 'call', patterns: ['agents'] },
    ownTimeout: true,
    run({ agent_id, message, blocking = true, context_id, timeout_seconds }, context) {
      const conversation = context_id === undefined ? {} : { contextId: context_id }
      const params = {
        message: {
          kind: 'message',
          role: 'user',
          messageId: randomUUID(),
          parts: [{ kind: 'text', text: message }],
          ...conversation,
        },
        ...conversation,
        configuration: { blocking, ...(timeout_seconds === undefined ? {} : { timeout: timeout_seconds }) },
      }
      return forward(
        agents,
        {
          agentId: agent_id,
          method: SEND,
          body: requestBody(SEND, params),
          timeoutSeconds: timeout_seconds,
          blocking,
        },
        context,
      )
    },
  })
}

export function agentQuery(agents: AgentDirectory): Tool {
  return defineTool({
    name: 'agent_query',
    title: 'Call a method of an agent',
    description:
      'Calls a JSON-RPC method of an agent, and returns as agent_send: "tasks/get" shows a task, "tasks/cancel" stops it, both with params {"id": "<task id>"}.',
    input: Type.Object(
      {
        agent_id: agentId(),
        method: argument.text('"tasks/get", "tasks/cancel", or another method of the agent.', {
          minLength: 1,
        }),
        params: Type.Optional(
          Type.Unsafe<Readonly<Record<string, unknown>>>({
            type: 'object',
            description: 'configuration.timeout is the seconds to wait for the reply.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    output: Type.Object({
      reply: Type.Optional(Type.Unknown()),
      bodies: bodiesInText,
    }),
    annotations: ACTS,
    needs: { action: 'call', patterns: ['agents'] },
    ownTimeout: true,
    rule: ({ params }) => timeoutProblem(timeoutOf(params)),
    run({ agent_id, method, params }, context) {
      const timeout = timeoutOf(params)
      const timeoutSeconds = typeof timeout === 'number' ? timeout : undefined
      const body = requestBody(method, params)
      return forward(agents, { agentId: agent_id, method, body, timeoutSeconds, blocking: true }, context)
    },
  })
}

function timeoutOf(params: Readonly<Record<string, unknown>> | undefined): unknown {
  const configuration = params?.['configuration']
  if (typeof configuration !== 'object' || configuration === null || !Object.hasOwn(configuration, 'timeout'))
    return undefined
  return Reflect.get(configuration, 'timeout')
}

/** The gateway enforces this timeout, so it must be a valid number. */
function timeoutProblem(timeout: unknown): ArgumentProblem | undefined {
  if (timeout === undefined || (typeof timeout === 'number' && timeout > 0)) return undefined
  return {
    argument: 'params.configuration.timeout',
    given: shownValue(timeout),
    allowed: 'a number of seconds above 0',
  }
}

/**
 * Returns a JSON-RPC request as bytes. It is made before the call waits: a waiting call must not hold the values of its
 * arguments, which can take many times the memory of their text.
 */
function requestBody(method: string, params: object | undefined): Uint8Array {
  return encodeText(JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method, params }))
}

interface AgentToolCall {
  readonly agentId: string
  readonly method: string
  /** The JSON-RPC request for the agent. */
  readonly body: Uint8Array
  readonly timeoutSeconds: number | undefined
  readonly blocking: boolean
}

async function forward(
  agents: AgentDirectory,
  { agentId, method, body, timeoutSeconds, blocking }: AgentToolCall,
  context: ToolContext,
): Promise<ToolOutcome> {
  context.broker.authorize('call', 'agents', agentId)
  const problem = hopsProblem(context.hops)
  if (problem !== undefined) return failure(`AGENT_LOOP: The call was refused: ${problem}.`)
  if (!(await agents.get(agentId))) return agentNotFound(agentId)
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
        acceptOnly: !blocking,
        ...(timeoutSeconds === undefined ? {} : { timeoutMs: milliseconds(timeoutSeconds) }),
      }),
    )
    if (blocking || !reply.executed) return agentOutcome(agentId, reply)
    return confirmation(`Request accepted for agent ${JSON.stringify(agentId)}; its reply will not be returned.`, {
      agent_id: agentId,
      accepted: true,
    })
  } catch (error) {
    if (isBrokerError(error, 'REQUEST_TIMEOUT') || isBrokerError(error, 'NO_SUBSCRIBER')) return agentTimeout(agentId)
    return cancelledOutcome(error, context, awaited)
  }
}

function milliseconds(seconds: number): number {
  return Math.min(Math.max(1, Math.round(seconds * 1000)), Number.MAX_SAFE_INTEGER)
}
