import { randomUUID } from 'node:crypto'

import type { AgentInboxRequest, AgentRefusal, InboxLeases } from '@signalbox/broker-core/ports'
import { argument, isJsonObject, isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { agentId } from './agents.ts'
import { ADDS, CHANGES, defineTool, withProgress } from './define-tool.ts'
import { confirmation, failure } from './results.ts'
import type { Tool, ToolOutcome } from './tool.ts'

const STRICT = { additionalProperties: false } as const

/** The default lease, in seconds: a model may take long for an answer. */
const LEASE_SECONDS = 300

const leaseSeconds = () =>
  Type.Optional(
    Type.Integer({
      description: 'Seconds until the request is delivered again if it has no answer.',
      minimum: 10,
      maximum: 3_600,
      default: LEASE_SECONDS,
    }),
  )

/** The names of the states in the tool, and in A2A 1.0. */
const STATES = {
  completed: 'TASK_STATE_COMPLETED',
  working: 'TASK_STATE_WORKING',
  'input-required': 'TASK_STATE_INPUT_REQUIRED',
  failed: 'TASK_STATE_FAILED',
} as const

function inboxTake(inboxes: InboxLeases): Tool {
  return defineTool({
    name: 'inbox_take',
    title: 'Take a request of an agent',
    summary:
      'Waits for the next request to an agent that you own, and leases it. Answer it with inbox_reply. ' +
      'Returns a JSON array of {receipt, task_id, context_id, attempt, lease_until, caller_id, text, request}, or [] after wait_seconds.',
    input: Type.Object(
      {
        agent_id: agentId(),
        wait_seconds: Type.Optional(
          Type.Integer({ description: 'Seconds to wait for a request.', minimum: 0, maximum: 60, default: 5 }),
        ),
        lease_seconds: leaseSeconds(),
      },
      STRICT,
    ),
    output: Type.Object({ requests: Type.Array(Type.Object({})) }),
    annotations: ADDS,
    needs: { action: 'register', patterns: ['agents'] },
    ownTimeout: true,
    onDisconnect: 'cancel',
    async run({ agent_id, wait_seconds = 5, lease_seconds = LEASE_SECONDS }, context) {
      const { broker, signal } = context
      const { caller } = broker
      broker.authorize('register', 'agents', agent_id)
      const awaited = `a request to agent ${JSON.stringify(agent_id)}`
      const options = { caller, waitMs: wait_seconds * 1000, leaseMs: lease_seconds * 1000, signal }
      const taken = await withProgress(context, awaited, () => inboxes.take(agent_id, options)).catch(
        (error: unknown) => {
          // The client has left, or the server shuts down.
          if (!signal.aborted) throw error
          return undefined
        },
      )
      if (taken === undefined) return confirmation('[]', { requests: [] })
      if ('refused' in taken) return refused(taken)
      const shape = requestShape(taken)
      const { receipt } = taken
      return {
        ...confirmation(JSON.stringify([shape]), { requests: [shape] }),
        settlement: {
          commit: async () => {},
          rollback: async () => void (await inboxes.release(agent_id, { caller, receipt })),
        },
      }
    },
  })
}

function inboxReply(inboxes: InboxLeases): Tool {
  return defineTool({
    name: 'inbox_reply',
    title: 'Answer a request of an agent',
    summary:
      'Answers a request that inbox_take returned. state "completed" (the default) and "failed" end the task; "input-required" asks its caller a question, whose answer comes with inbox_take; ' +
      '"working" reports progress and extends the lease. cancel_requested is true if the caller has canceled the task: stop then, and reply "failed".',
    input: Type.Object(
      {
        agent_id: agentId(),
        receipt: argument.text('receipt of inbox_take.', { minLength: 1 }),
        text: Type.Optional(
          argument.text('The message to the caller: the answer, the question, or the reason.', { minLength: 1 }),
        ),
        state: Type.Optional(
          Type.Unsafe<keyof typeof STATES>({
            type: 'string',
            enum: Object.keys(STATES),
            description: 'The state of the task.',
            default: 'completed',
          }),
        ),
        artifact: Type.Optional(
          argument.text('A result to keep with the task, such as a document, as text.', { minLength: 1 }),
        ),
        lease_seconds: leaseSeconds(),
      },
      STRICT,
    ),
    output: Type.Object({ state: Type.String(), cancel_requested: Type.Boolean(), lease_until: Type.String() }),
    annotations: CHANGES,
    needs: { action: 'register', patterns: ['agents'] },
    async run({ agent_id, receipt, text, state = 'completed', artifact, lease_seconds = LEASE_SECONDS }, { broker }) {
      broker.authorize('register', 'agents', agent_id)
      const message =
        text === undefined ? undefined : { messageId: randomUUID(), role: 'ROLE_AGENT', parts: [{ text }] }
      const status = { state: STATES[state], timestamp: new Date().toISOString(), ...(message && { message }) }
      const result = artifact === undefined ? [] : [{ artifactId: randomUUID(), parts: [{ text: artifact }] }]
      const replied = await inboxes.reply(agent_id, {
        caller: broker.caller,
        receipt,
        events: [...result.map((one) => ({ artifactUpdate: { artifact: one } })), { statusUpdate: { status } }],
        leaseMs: lease_seconds * 1000,
      })
      if ('refused' in replied) return refused(replied)
      const { cancelRequested, leaseUntil } = replied
      const done = state === 'working' ? 'Progress reported; the request is still leased.' : `The task is ${state}.`
      const canceled = cancelRequested ? ' The caller has canceled the task.' : ''
      const content = { state, cancel_requested: cancelRequested, lease_until: isoTime(leaseUntil) }
      return confirmation(done + canceled, content)
    },
  })
}

function requestShape(taken: AgentInboxRequest) {
  const { receipt, taskId, contextId, attempt, leaseUntil, callerId, request } = taken
  const message = isJsonObject(request['message']) ? request['message'] : {}
  const parts: readonly unknown[] = Array.isArray(message['parts']) ? message['parts'] : []
  const texts = parts.flatMap((part) => (isJsonObject(part) && typeof part['text'] === 'string' ? part['text'] : []))
  return {
    receipt,
    task_id: taskId,
    context_id: contextId,
    attempt,
    lease_until: isoTime(leaseUntil),
    caller_id: callerId,
    text: texts.join('\n'),
    request,
  }
}

function refused({ message, refused: code }: AgentRefusal): ToolOutcome {
  const next = code === 'LEASE_LOST' ? ' Call inbox_take for the next request.' : ''
  return failure(`${code}: ${message}.${next}`)
}

/** Returns the tools with which a model answers the requests of a pull agent. */
export function inboxTools(inboxes: InboxLeases): readonly Tool[] {
  return [inboxTake(inboxes), inboxReply(inboxes)]
}
