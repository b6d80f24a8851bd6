import { setTimeout as pause } from 'node:timers/promises'

import { isJsonObject, JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import type { Tool, ToolContext, ToolOutcome } from '../../packages/connector-mcp/src/tools/tool.ts'
import { tasksRequired } from '../../packages/connector-mcp/src/wire/capabilities.ts'
import { fixture, text } from './fixture-tools.ts'

/** A schema that takes any arguments. */
const ANY_ARGUMENTS = { type: 'object', properties: {}, additionalProperties: true } as const

/** Time that a job takes, in ms. */
const JOB_MS = 1_000

/** Lets the call become a task. @throws JsonRpcError -32021 if the client has no tasks */
function needTask(context: ToolContext): void {
  if (!context.allowTask()) throw tasksRequired('tools/call')
}

/** Returns a tool that asks for confirmations, and completes when all have arrived. */
function asking(name: string, questions: readonly string[]): Tool {
  const params = {
    mode: 'form',
    message: 'Continue?',
    requestedSchema: { type: 'object', properties: { confirm: { type: 'boolean' } } },
  }
  const requests = Object.fromEntries(
    questions.map((question) => [question, { method: 'elicitation/create', params }] as const),
  )
  const call = (context: ToolContext): ToolOutcome => {
    needTask(context)
    return context.mayAsk ? { ...text('asked'), input: { requests, state: {} } } : text('the client has no user to ask')
  }
  return fixture(name, call, ANY_ARGUMENTS, {
    resume: async (_state, answers) => text(`answered: ${Object.keys(answers).join(', ')}`),
    cancel: async () => {},
  })
}

/** The tools of the scenarios with tasks. */
export const TASK_TOOLS: readonly Tool[] = [
  fixture(
    'greet',
    (_context, args) => text(`Hello, ${isJsonObject(args) ? String(args['name']) : ''}!`),
    ANY_ARGUMENTS,
  ),
  fixture(
    'slow_compute',
    async (context, args) => {
      context.allowTask()
      const seconds = isJsonObject(args) ? Number(args['seconds']) : 0
      await pause(seconds * 1000, undefined, { signal: context.signal }).catch(() => {})
      return text('computed')
    },
    ANY_ARGUMENTS,
  ),
  fixture('failing_job', async (context) => {
    needTask(context)
    await pause(JOB_MS)
    return { text: 'the job failed', isError: true }
  }),
  fixture('protocol_error_job', async (context) => {
    needTask(context)
    await pause(JOB_MS)
    throw new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, 'the job broke the protocol')
  }),
  asking('confirm_delete', ['confirm']),
  asking('multi_input', ['first', 'second']),
]
