import { randomUUID } from 'node:crypto'

import { argument, shownValue } from '@signalbox/http-kit'
import type { ArgumentProblem } from '@signalbox/http-kit'
import { Type } from 'typebox'

import type { AgentDirectory } from '../agent-directory.ts'
import { forward, requestBody } from './agent-call.ts'
import { agentTaskHandling, askedBy, continuedTask, sendsMessage, taskState } from './agent-tasks.ts'
import { agentId } from './agents.ts'
import { ACTS } from './annotations.ts'
import { defineTool } from './define-tool.ts'
import { bodiesInText } from './results.ts'
import type { Tool } from './tool.ts'

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
    onTask: agentTaskHandling(agents),
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
      const state = taskState({ agentId: agent_id, timeoutSeconds: timeout_seconds })
      if (blocking) context.allowTask(state)
      const body = requestBody(SEND, params)
      const call = { agentId: agent_id, method: SEND, body, timeoutSeconds: timeout_seconds, blocking }
      return askedBy(forward(agents, call, context), state, context)
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
    onTask: agentTaskHandling(agents),
    rule: ({ params }) => timeoutProblem(timeoutOf(params)),
    run({ agent_id, method, params }, context) {
      const timeout = timeoutOf(params)
      const timeoutSeconds = typeof timeout === 'number' ? timeout : undefined
      const state = taskState({ agentId: agent_id, taskId: continuedTask(method, params), timeoutSeconds })
      context.allowTask(state)
      const call = { agentId: agent_id, method, body: requestBody(method, params), timeoutSeconds, blocking: true }
      const outcome = forward(agents, call, context)
      return sendsMessage(method) ? askedBy(outcome, state, context) : outcome
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
