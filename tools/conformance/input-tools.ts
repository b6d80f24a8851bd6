import { setTimeout as pause } from 'node:timers/promises'

import type { JsonObject } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit'

import type { Tool, ToolContext, ToolOutcome } from '../../packages/connector-mcp/src/tools/tool.ts'
import { fixture, text } from './fixture-tools.ts'

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
