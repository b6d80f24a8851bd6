import { closest, plausibleMistakes, shownText } from '@signalbox/broker-core/internal'
import type { JsonObject, JsonRpcRequest, Steps } from '@signalbox/http-kit'
import type { ScannedMessage } from '@signalbox/http-kit/internal'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import {
  idKey,
  isIdText,
  isJsonObject,
  MAX_JSON_KEYS,
  memberText,
  memberTextInSteps,
} from '@signalbox/http-kit/internal'

import type { CallRetry } from './request-state.ts'
import type { Tool } from './tools/tool.ts'

/** Returns the `protocolVersion` of `initialize`. @throws JsonRpcError -32602 if it is not a string */
export function readProtocolVersion(params: JsonObject | undefined, id: string): string {
  const version = params?.['protocolVersion']
  if (typeof version === 'string') return version
  throw invalidParams('initialize: protocolVersion must be a string, such as "2025-11-25"', id)
}

/** Rejects every cursor: all tools are on the first page, so no cursor is valid. @throws JsonRpcError -32602 */
export function refuseCursor(params: JsonObject | undefined, id: string): void {
  if (params?.['cursor'] === undefined) return
  throw invalidParams('tools/list: unknown cursor; all tools are on the first page', id)
}

/** The most tasks of one `subscriptions/listen`. */
const MAX_WATCHED = 100

/**
 * Returns the tasks in the filter of a `subscriptions/listen`; `undefined` if it names none.
 * @throws JsonRpcError -32602 if the filter is missing, or it or its `taskIds` are not valid
 */
export function readWatchedTasks(params: JsonObject | undefined, id: string): readonly string[] | undefined {
  const filter = params?.['notifications']
  if (!isJsonObject(filter)) {
    throw invalidParams('subscriptions/listen: notifications must be an object, such as {"taskIds": ["…"]}', id)
  }
  const { taskIds } = filter
  if (taskIds === undefined) return undefined
  if (Array.isArray(taskIds) && taskIds.length <= MAX_WATCHED && taskIds.every((each) => typeof each === 'string')) {
    return [...new Set(taskIds)]
  }
  throw invalidParams(
    `subscriptions/listen: notifications.taskIds must be an array of at most ${MAX_WATCHED} task ids`,
    id,
  )
}

/** Returns the id in a request about a task. @throws JsonRpcError -32602 */
export function readTaskId({ id, method, params }: JsonRpcRequest): string {
  const taskId = params?.['taskId']
  if (typeof taskId === 'string' && taskId.length <= MAX_TASK_ID) return taskId
  throw invalidParams(`${method}: taskId must be the id of a task`, id)
}

/**
 * Returns the state and the responses in a repeated `tools/call`; `undefined` for a new call.
 * @throws JsonRpcError -32602
 */
export function readRetry(params: JsonObject | undefined, id: string): CallRetry | undefined {
  const requestState = params?.['requestState']
  if (requestState === undefined) return undefined
  const responses = params?.['inputResponses'] ?? {}
  if (typeof requestState !== 'string') throw invalidParams('tools/call: requestState must be a string', id)
  if (!isJsonObject(responses)) throw invalidParams('tools/call: inputResponses must be an object', id)
  return { requestState, responses }
}

/** Returns the answers in a `tasks/update`. @throws JsonRpcError -32602 */
export function readInputResponses({ id, method, params }: JsonRpcRequest): JsonObject {
  const responses = params?.['inputResponses']
  if (isJsonObject(responses)) return responses
  throw invalidParams(`${method}: inputResponses must be an object`, id)
}

/** The most characters of a task id; the ids of this server are much shorter. */
const MAX_TASK_ID = 256

/** The limits of a message. The parameters of `agent_query` are free: they belong to the agent. */
export const MESSAGE_LIMITS = {
  maxKeys: MAX_JSON_KEYS,
  uniqueKeys: true,
  longBody: true,
  freeForm: ['params', 'arguments', 'params'],
}

/** Returns the tool that a message calls, if its text names one without escapes. */
export function* calledTool(
  tools: ReadonlyMap<string, Tool>,
  { methodText, paramsText }: ScannedMessage,
): Steps<Tool | undefined> {
  if (methodText !== '"tools/call"' || paramsText === undefined) return undefined
  const name = yield* memberTextInSteps(paramsText, 'name')
  return tools.get(name?.slice(1, -1) ?? '')
}

/** Returns the tool that `tools/call` names. @throws JsonRpcError -32602 for an unknown tool */
export function readTool(tools: ReadonlyMap<string, Tool>, params: JsonObject | undefined, id: string): Tool {
  const name = params?.['name']
  if (typeof name !== 'string') throw invalidParams('tools/call: name must be a string', id)
  const tool = tools.get(name)
  if (tool !== undefined) return tool
  const allowed = [...tools.keys()]
  const meant = similarTool(name, allowed)
  const unknown = `unknown tool ${shownText(name)};${meant === undefined ? '' : ` did you mean ${meant}?`}`
  throw invalidParams(`tools/call: ${unknown} allowed are ${allowed.join(', ')}`, id, { allowed })
}

/** Returns the tool that a model may mean by a name in another style, with a prefix of its host, or with a mistake. */
function similarTool(name: string, allowed: readonly string[]): string | undefined {
  if (name.length > MAX_TOOL_NAME) return undefined
  const snake = name
    .replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_')
    .replaceAll(/[-. /]/g, '_')
    .toLowerCase()
  return (
    allowed.find((tool) => snake.endsWith(tool) || inOrder(tool) === inOrder(snake)) ??
    closest(snake, allowed, plausibleMistakes(snake))
  )
}

function inOrder(name: string): string {
  return name.split('_').toSorted().join('_')
}

/** The most characters of a tool's name in common hosts. */
const MAX_TOOL_NAME = 128

/**
 * Returns the unchecked arguments; an empty object if there are none.
 * @throws JsonRpcError -32602 if they are not an object
 */
export function readArguments(params: JsonObject | undefined, id: string): unknown {
  const args = params?.['arguments']
  if (args === undefined) return {}
  if (typeof args === 'object' && args !== null && !Array.isArray(args)) return args
  throw invalidParams('tools/call: arguments must be an object', id)
}

/**
 * Returns the source text of `_meta.progressToken`: a string or an integer, echoed exactly.
 * @throws JsonRpcError -32602 for another type
 */
export function readProgressToken({ id, params, paramsText }: JsonRpcRequest): string | undefined {
  const meta = params?.['_meta']
  // Only a token that is there is worth another scan of the text.
  if (meta === undefined || (isJsonObject(meta) && meta['progressToken'] === undefined)) return undefined
  const metaText = paramsText === undefined ? undefined : memberText(paramsText, '_meta')
  if (typeof meta !== 'object' || meta === null || Array.isArray(meta) || metaText === undefined) {
    throw invalidParams('_meta must be an object', id)
  }
  const token = memberText(metaText, 'progressToken')
  if (token === undefined || isIdText(token)) return token
  throw invalidParams('_meta.progressToken must be a string or an integer', id)
}

/** Returns the request id in a `notifications/cancelled`, in the form for a key; `undefined` without an id. */
export function readCancelledId(paramsText: string | undefined): string | undefined {
  const text = paramsText === undefined ? undefined : memberText(paramsText, 'requestId')
  return text !== undefined && isIdText(text) ? idKey(text) : undefined
}

function invalidParams(reason: string, id: string, data?: unknown): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid params: ${reason}`, { id, data })
}

/** Returns the members of an object as JSON text without the braces. */
export function membersText(object: object): string {
  return JSON.stringify(object).slice(1, -1)
}

/** Returns names in a sentence. */
export function listText(names: readonly string[]): string {
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}
