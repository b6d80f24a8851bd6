import { setTimeout as pause } from 'node:timers/promises'

import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'

import type { TaskHandling, Tool, ToolContext, ToolOutcome } from '../../packages/connector-mcp/src/tools/tool.ts'
import { tasksRequired } from '../../packages/connector-mcp/src/wire/capabilities.ts'
import { MCP_CODES } from '../../packages/connector-mcp/src/wire/2026-07-28.ts'

/** The schema of the scenario `json-schema-2020-12`: its keywords have to reach clients unchanged. */
const SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // oxlint-disable-next-line unicorn/no-thenable -- A keyword of JSON Schema.
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
} as const

const NO_ARGUMENTS = { type: 'object', properties: {}, additionalProperties: false } as const

type Call = (context: ToolContext, args: unknown) => ToolOutcome | Promise<ToolOutcome>

/** Returns a tool with the name and the effect that scenarios of the suite require. */
function fixture(
  name: string,
  call: Call,
  inputSchema: Tool['definition']['inputSchema'] = NO_ARGUMENTS,
  onTask?: TaskHandling,
): Tool {
  return {
    definition: {
      name,
      title: name,
      description: 'A tool of the conformance suite.',
      inputSchema,
      outputSchema: { type: 'object', properties: {} },
      annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    },
    needs: { action: 'list', patterns: ['queues'] },
    ownTimeout: true,
    onDisconnect: 'run-on',
    onTask,
    call: async (args, context) => call(context, args),
  }
}

function text(said: string): ToolOutcome {
  return { text: said, isError: false, structuredContent: {} }
}

/** The tools of the scenarios without tasks. */
export const FIXTURE_TOOLS: readonly Tool[] = [
  fixture('test_simple_text', () => text('This is a simple text response for testing.')),
  fixture('test_error_handling', () => ({
    text: 'This tool intentionally returns an error for testing',
    isError: true,
  })),
  fixture('test_tool_with_progress', async (context) => {
    for (const step of [0, 50, 100]) {
      context.progress(`${step} of 100`)
      await pause(50)
    }
    return text('done')
  }),
  // The connector sends no log messages, so that none appears without a log level.
  fixture('test_logging_tool', () => text('nothing was logged')),
  fixture('test_missing_capability', () => {
    throw new JsonRpcError(MCP_CODES.MISSING_CLIENT_CAPABILITY, 'this tool needs the client capability sampling', {
      data: { requiredCapabilities: { sampling: {} } },
    })
  }),
  fixture('json_schema_2020_12_tool', () => text('done'), SCHEMA),
]

/** Time after which the fixture with a task answers, in ms: longer than calls need to become tasks. */
const LONG_MS = 200

/** One question, with the name of its only field. */
interface Question {
  readonly key: string
  readonly message: string
  readonly field: string
  readonly type: 'string' | 'boolean'
}

const NAME: Question = { key: 'user_name', message: 'What is your name?', field: 'name', type: 'string' }
const CONFIRM: Question = { key: 'confirm', message: 'Please confirm', field: 'ok', type: 'boolean' }
const STEPS: readonly Question[] = [
  { key: 'step1', message: 'Step 1: What is your name?', field: 'name', type: 'string' },
  { key: 'step2', message: 'Step 2: What is your favorite color?', field: 'color', type: 'string' },
]

function ask({ key, message, field, type }: Question, answers: JsonObject): ToolOutcome {
  const requestedSchema = { type: 'object', properties: { [field]: { type } }, required: [field] }
  const params = { mode: 'form', message, requestedSchema }
  return { ...text('asked'), input: { requests: { [key]: { method: 'elicitation/create', params } }, state: answers } }
}

type Finish = (answers: JsonObject, context: ToolContext) => ToolOutcome | Promise<ToolOutcome>

/** Returns a tool that asks one question after another. Its notes are the answers so far, by the fields' names. */
function asking(name: string, questions: readonly Question[], finish: Finish): Tool {
  const next = (answers: JsonObject, context: ToolContext): ToolOutcome | Promise<ToolOutcome> => {
    const question = questions.find(({ field }) => !Object.hasOwn(answers, field))
    if (question === undefined) return finish(answers, context)
    return context.mayAsk ? ask(question, answers) : text('the client shows no forms')
  }
  return fixture(name, (context) => next({}, context), undefined, {
    resume: async (state, responses, context) => {
      const contents = Object.values(responses).map(({ content }) => (isJsonObject(content) ? content : {}))
      return next(Object.assign({ ...state }, ...contents), context)
    },
    cancel: async () => {},
  })
}

/** Returns the answer of a tool after enough time to become a task. */
async function slowly(answers: JsonObject, context: ToolContext): Promise<ToolOutcome> {
  context.allowTask()
  await pause(LONG_MS)
  return text(`Hello, ${String(answers['name'])}!`)
}

/** The tools of the scenarios in which a call asks for input before it has a task. */
export const INPUT_TOOLS: readonly Tool[] = [
  asking('test_input_required_result_elicitation', [NAME], ({ name }) => text(`Hello, ${String(name)}!`)),
  asking('test_input_required_result_request_state', [CONFIRM], () => text('state-ok')),
  asking('test_input_required_result_tampered_state', [CONFIRM], () => text('state-ok')),
  asking('test_input_required_result_multi_round', STEPS, ({ name, color }) =>
    text(`${String(name)}: ${String(color)}`),
  ),
  asking('test_streaming_elicitation', [CONFIRM], () => text('confirmed')),
  asking('test_tool_with_task', [NAME], slowly),
]

/** A schema that takes any arguments. */
const ANY_ARGUMENTS = { type: 'object', properties: {}, additionalProperties: true } as const

/** Time that a job takes, in ms. */
const JOB_MS = 1_000

/** Lets the call become a task. @throws JsonRpcError -32021 if the client has no tasks */
function needTask(context: ToolContext): void {
  if (!context.allowTask()) throw tasksRequired('tools/call')
}

/** Returns a tool that asks for confirmations, and completes when all have arrived. */
function confirming(name: string, questions: readonly string[]): Tool {
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
  confirming('confirm_delete', ['confirm']),
  confirming('multi_input', ['first', 'second']),
]
