import { randomUUID } from 'node:crypto'

import { IDEMPOTENCY_KEY_FORM, isIdempotencyKey } from '@signalbox/broker-core/internal'
import type { AgentDirectory } from '@signalbox/broker-core/ports'
import type { JsonObject } from '@signalbox/http-kit'
import type { ArgumentProblem } from '@signalbox/http-kit/internal'
import { argument, isJsonObject, parseJson, shownValue } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { forward, requestBody, requestBodyOf } from './agent-call.ts'
import { agentId } from './agents.ts'
import { brokerFailure } from './broker-failures.ts'
import { ACTS, defineTool } from './define-tool.ts'
import { bodiesInText, failure } from './results.ts'
import type { TaskHandling, Tool, ToolContext, ToolOutcome } from './tool.ts'

const SEND = 'message/send'

export function agentSend(agents: AgentDirectory): Tool {
  return defineTool({
    name: 'agent_send',
    title: 'Send a message to an agent',
    summary:
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
        message_id: Type.Optional(
          argument.text('To repeat a message, repeat its id: durable agents run it once.', { minLength: 1 }),
        ),
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
    rule: ({ message_id: given }) =>
      given === undefined || isIdempotencyKey(given)
        ? undefined
        : { argument: 'message_id', given: shownValue(given), allowed: IDEMPOTENCY_KEY_FORM },
    run({ agent_id, message, blocking = true, context_id, message_id, timeout_seconds }, context) {
      const params = {
        message: {
          kind: 'message',
          role: 'user',
          messageId: message_id ?? randomUUID(),
          parts: [{ kind: 'text', text: message }],
          contextId: context_id,
        },
        contextId: context_id,
        configuration: { blocking, timeout: timeout_seconds },
      }
      const state = taskState({ agentId: agent_id, timeoutSeconds: timeout_seconds })
      if (blocking) context.allowTask(state)
      const body = requestBody(SEND, params)
      const call = { agentId: agent_id, method: SEND, body, timeoutSeconds: timeout_seconds, blocking }
      return withQuestion(forward(agents, call, context), state, context)
    },
  })
}

export function agentQuery(agents: AgentDirectory): Tool {
  return defineTool({
    name: 'agent_query',
    title: 'Call a method of an agent',
    summary:
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
      const { freeFormText: source } = context
      const body = source === undefined ? requestBody(method, params) : requestBodyOf(method, source)
      const call = { agentId: agent_id, method, body, timeoutSeconds, blocking: true }
      const outcome = forward(agents, call, context)
      return sendsMessage(method) ? withQuestion(outcome, state, context) : outcome
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

const SEND_METHODS: ReadonlySet<string> = new Set([SEND, 'SendMessage'])
const CANCEL = 'tasks/cancel'

/** Time that an agent has to answer a cancellation, in seconds. */
const CANCEL_SECONDS = 10

/** The state of an agent's task that waits for its client, by version of A2A. */
const INPUT_REQUIRED: ReadonlySet<unknown> = new Set(['input-required', 'TASK_STATE_INPUT_REQUIRED'])

/** Characters of a question that are shown to a user. */
const MAX_QUESTION = 8_192

/** The name of the request that carries an agent's question, and of the field with the answer. */
const QUESTION = 'question'
const ANSWER = 'answer'

const ANY_KEYS = { maxKeys: 0, uniqueKeys: false }

/** The notes with which a call of an agent is continued or cancelled. */
interface AgentTaskState {
  readonly agentId: string
  /** The agent's own id of its task, once it is known. */
  readonly taskId?: string | undefined
  readonly contextId?: string | undefined
  readonly timeoutSeconds?: number | undefined
}

function taskState(state: AgentTaskState): JsonObject {
  return { ...state }
}

function readState({ agentId, taskId, contextId, timeoutSeconds }: JsonObject): AgentTaskState {
  return {
    agentId: String(agentId),
    taskId: typeof taskId === 'string' ? taskId : undefined,
    contextId: typeof contextId === 'string' ? contextId : undefined,
    timeoutSeconds: typeof timeoutSeconds === 'number' ? timeoutSeconds : undefined,
  }
}

/** Returns `true` if a method of A2A sends a message to an agent. */
function sendsMessage(method: string): boolean {
  return SEND_METHODS.has(method)
}

/** Returns the id of the agent's task that a message continues. */
function continuedTask(method: string, params: JsonObject | undefined): string | undefined {
  const message = sendsMessage(method) ? params?.['message'] : undefined
  const taskId = isJsonObject(message) ? message['taskId'] : undefined
  return typeof taskId === 'string' ? taskId : undefined
}

/** Adds to the outcome of a message the question that the agent asks in it, if the client's user can answer it. */
async function withQuestion(
  outcome: Promise<ToolOutcome>,
  state: JsonObject,
  { mayAsk }: ToolContext,
): Promise<ToolOutcome> {
  const replied = await outcome
  const asked = mayAsk && !replied.isError ? questionIn(String(replied.text)) : undefined
  if (asked === undefined) return replied
  const { question, taskId, contextId } = asked
  const properties = { [ANSWER]: { type: 'string', title: 'Answer' } }
  const requestedSchema = { type: 'object', properties, required: [ANSWER] }
  const params = { mode: 'form', message: question, requestedSchema }
  return {
    ...replied,
    input: {
      requests: { [QUESTION]: { method: 'elicitation/create', params } },
      state: taskState({ ...readState(state), taskId, contextId }),
    },
  }
}

interface AgentQuestion {
  readonly question: string
  readonly taskId: string
  readonly contextId: string | undefined
}

/** Returns the question in an agent's reply: a task of A2A 0.3 or 1.0 that waits for input. */
function questionIn(reply: string): AgentQuestion | undefined {
  if (!/input-required|TASK_STATE_INPUT_REQUIRED/.test(reply)) return undefined
  const json = parseJson(reply, ANY_KEYS)
  const value = 'value' in json ? json.value : undefined
  const task = isJsonObject(value) && isJsonObject(value['task']) ? value['task'] : value
  if (!isJsonObject(task) || !isJsonObject(task['status'])) return undefined
  const { id, contextId, status } = task
  if (typeof id !== 'string' || !isJsonObject(status) || !INPUT_REQUIRED.has(status['state'])) return undefined
  return {
    question: messageText(status['message']).slice(0, MAX_QUESTION) || 'The agent needs more information.',
    taskId: id,
    contextId: typeof contextId === 'string' ? contextId : undefined,
  }
}

function messageText(message: unknown): string {
  const parts = isJsonObject(message) ? message['parts'] : undefined
  if (!Array.isArray(parts)) return ''
  return parts
    .flatMap((part: unknown) => (isJsonObject(part) && typeof part['text'] === 'string' ? part['text'] : []))
    .join('\n')
}

/** Returns the continuation and the cancellation of the calls of agents. */
function agentTaskHandling(agents: AgentDirectory): TaskHandling {
  return {
    async resume(state, answers, context) {
      context.allowTask(state)
      const { agentId, taskId, contextId, timeoutSeconds } = readState(state)
      const reply = answers[QUESTION]
      if (reply?.['action'] !== 'accept') return declined(agentId, taskId)
      const message = {
        kind: 'message',
        role: 'user',
        messageId: randomUUID(),
        parts: [{ kind: 'text', text: answerText(reply['content']) }],
        taskId,
        contextId,
      }
      const body = requestBody(SEND, { message, contextId, configuration: { blocking: true, timeout: timeoutSeconds } })
      const call = { agentId, method: SEND, body, timeoutSeconds, blocking: true }
      const outcome = forward(agents, call, context).catch((error: unknown) => brokerFailure('agent_send', error))
      return withQuestion(outcome, state, context)
    },
    async cancel(state, context) {
      const { agentId, taskId } = readState(state)
      // An agent that has not answered yet works on: nothing names its task.
      if (taskId === undefined) return
      const body = requestBody(CANCEL, { id: taskId })
      const call = { agentId, method: CANCEL, body, timeoutSeconds: CANCEL_SECONDS, blocking: true }
      // No client waits for the outcome.
      await forward(agents, call, context).catch((error: unknown) => brokerFailure('agent_query', error))
    },
  }
}

/** Returns the text of an answer, also from clients that return another form than the requested one. */
function answerText(content: unknown): string {
  const answer = isJsonObject(content) ? content[ANSWER] : content
  return typeof answer === 'string' ? answer : JSON.stringify(content ?? '')
}

function declined(agentId: string, taskId: string | undefined): ToolOutcome {
  return failure(
    `INPUT_DECLINED: The user did not answer the question of the agent ${JSON.stringify(agentId)}. Its task ${JSON.stringify(taskId)} still waits: answer it with agent_query (message/send with params.message.taskId), or stop it with agent_query (tasks/cancel).`,
  )
}
