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
      'Sends a text message to an agent (A2A message/send) and, unless blocking is false, returns its reply. Use it to ask an agent in words; agent_list shows the agents. ' +
      'To follow up a task that the agent has started, use agent_query. Returns the reply as JSON text, or an error if no agent has this id, or the agent cannot be reached, rejects the request, or does not answer in time.',
    input: Type.Object(
      {
        agent_id: agentId(),
        message: argument.text('The text for the agent.'),
        blocking: Type.Optional(
          Type.Boolean({
            description:
              'If true, waits for the reply. If false, returns after the request is accepted; the reply is not available.',
            default: true,
          }),
        ),
        context_id: Type.Optional(
          argument.text(
            'The id of a conversation to continue (contextId in an earlier reply). Starts a new one if omitted.',
          ),
        ),
        timeout_seconds: Type.Optional(
          Type.Integer({
            description:
              "Time for the agent to answer, in seconds, 1 or more. If omitted or too large, the server's own limit applies.",
            minimum: 1,
          }),
        ),
      },
      { additionalProperties: false },
    ),
    output: Type.Object({
      reply: Type.Optional(Type.Unknown({ description: "The agent's reply: usually a message or a task." })),
      bodies: bodiesInText,
      agent_id: Type.Optional(Type.String({ description: 'The agent; present if blocking is false.' })),
      accepted: Type.Optional(
        Type.Boolean({ description: 'True if the request was accepted; present if blocking is false.' }),
      ),
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
      'Calls a JSON-RPC method of an agent and returns its reply: "tasks/get" to see the state of a task, "tasks/cancel" to stop it (both with params {"id": "<task id>"}), or another method of the agent. ' +
      'To send a message in words, use agent_send. Returns the reply as JSON text, or an error if no agent has this id, or the agent cannot be reached, rejects the request, or does not answer in time.',
    input: Type.Object(
      {
        agent_id: agentId(),
        method: argument.text('The method: "tasks/get", "tasks/cancel", or another method of the agent.', {
          minLength: 1,
        }),
        params: Type.Optional(
          Type.Unsafe<Readonly<Record<string, unknown>>>({
            type: 'object',
            description:
              'The parameters of the method, such as {"id": "<task id>"}. configuration.timeout is the time for the agent to answer, in seconds.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    output: Type.Object({
      reply: Type.Optional(Type.Unknown({ description: "The agent's reply." })),
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
