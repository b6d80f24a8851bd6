import { randomUUID } from 'node:crypto'

import { decodeText, encodeText } from '@signalbox/broker-core'
import type { JsonObject, Steps } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { isJsonObject, MAX_JSON_DEPTH, parseJsonInSteps } from '@signalbox/http-kit/internal'

import type { Operation } from '../wire/index.ts'
import { METHODS, parseForTranslation, protoName } from '../wire/index.ts'

/** The JSON-RPC request of A2A 1.0 that a request of the HTTP+JSON binding means. */
export interface RestRequest {
  /** As the agent gets it. */
  readonly body: Uint8Array
  readonly params: JsonObject
}

/** The envelope is one level of the request. */
const LIMITS = { uniqueKeys: false, maxDepth: MAX_JSON_DEPTH - 1 }

/** Operations that need no member in the body. Some clients send no body for them, others `null`. */
const BODY_IS_OPTIONAL: ReadonlySet<Operation> = new Set<Operation>(['cancel', 'resubscribe'])

/**
 * Returns the JSON-RPC request. A body passes byte for byte if the path and the query set no members.
 * @param members The members that the path and the query set; those of the body count less
 * @param body undefined for a request whose HTTP method has none
 * @throws JsonRpcError -32700 for a body that is not JSON, -32600 for one that is no object or exceeds the limits
 */
export function* restRequest(
  operation: Operation,
  members: JsonObject,
  body: Uint8Array | undefined,
): Steps<RestRequest> {
  const given = body === undefined ? undefined : yield* readBody(operation, body)
  if (given === undefined) return request(operation, JSON.stringify(members), members)
  yield
  const { text, params } = given
  if (Object.keys(members).length === 0) return request(operation, text, params)
  const parsed = parseForTranslation(text)
  const merged = { ...(isJsonObject(parsed) ? parsed : {}), ...members }
  return request(operation, JSON.stringify(merged), merged)
}

function request(operation: Operation, paramsText: string, params: JsonObject): RestRequest {
  const method = METHODS[operation].names['1.0']
  const text = `{"jsonrpc":"2.0","id":"${randomUUID()}","method":"${method}","params":${paramsText}}`
  return { body: encodeText(text), params }
}

function* readBody(
  operation: Operation,
  body: Uint8Array,
): Steps<{ readonly text: string; readonly params: JsonObject } | undefined> {
  if (body.byteLength === 0 && BODY_IS_OPTIONAL.has(operation)) return undefined
  const text = decodeText(body)
  if (text === undefined) throw parseError('not valid UTF-8')
  const json = yield* parseJsonInSteps(text, LIMITS)
  if ('problem' in json) throw json.exceeded === undefined ? parseError(json.problem) : invalid(`is ${json.problem}`)
  const { value } = json
  if (value === null && BODY_IS_OPTIONAL.has(operation)) return undefined
  if (!isJsonObject(value)) throw invalid('must be a JSON object')
  return { text, params: value }
}

function parseError(problem: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.PARSE_ERROR, `parse error: the body is ${problem}`)
}

function invalid(problem: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, `invalid request: the body ${problem}`)
}

/** A parameter of the query: the member of the request that it sets, and the reader of its value. */
interface Parameter {
  readonly member: string
  /** Returns undefined for an invalid value. */
  readonly read: (text: string) => unknown
  readonly allowed: string
}

const INTEGER = /^-?\d{1,10}$/
const text = (member: string): Parameter => ({ member, read: (given) => given, allowed: 'a text' })

const integer = (member: string): Parameter => ({
  member,
  read: (given) => (INTEGER.test(given) ? Number(given) : undefined),
  allowed: 'an integer',
})

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
])

const boolean = (member: string): Parameter => ({
  member,
  read: (given) => BOOLEANS.get(given),
  allowed: 'true or false',
})

/** The specification shows `working` in a query, and `TASK_STATE_WORKING` in JSON. */
const STATE: Parameter = {
  member: 'status',
  read: (given) => (/^[a-z-]+$/.test(given) ? `TASK_STATE_${given.toUpperCase().replaceAll('-', '_')}` : given),
  allowed: 'a state of tasks',
}

const TENANT = { tenant: text('tenant') }
const NONE = {}

const PARAMETERS: { readonly [O in Operation]: Readonly<Record<string, Parameter>> } = {
  send: NONE,
  stream: NONE,
  get: { ...TENANT, historyLength: integer('historyLength') },
  list: {
    ...TENANT,
    contextId: text('contextId'),
    status: STATE,
    pageSize: integer('pageSize'),
    pageToken: text('pageToken'),
    historyLength: integer('historyLength'),
    statusTimestampAfter: text('statusTimestampAfter'),
    // The SDK for Go uses the name of an earlier draft.
    lastUpdatedAfter: text('statusTimestampAfter'),
    includeArtifacts: boolean('includeArtifacts'),
  },
  cancel: TENANT,
  resubscribe: TENANT,
  'push-create': NONE,
  'push-get': TENANT,
  'push-list': { ...TENANT, pageSize: integer('pageSize'), pageToken: text('pageToken') },
  'push-delete': TENANT,
  'extended-card': TENANT,
}

/** The most characters of a value that an error repeats. */
const SHOWN_CHARACTERS = 64

/**
 * Returns the members of a request that its query sets. Empty and unknown parameters are ignored, because clients repeat
 * members of the path in the query; the first of repeated ones counts.
 * @throws JsonRpcError -32602 for a value of the wrong type
 */
export function queryMembers(operation: Operation, query: string): JsonObject {
  const members: Record<string, unknown> = {}
  if (query === '') return members
  const given = new URLSearchParams(query)
  for (const [name, { member, read, allowed }] of Object.entries(PARAMETERS[operation])) {
    const value = given.get(name) || given.get(protoName(name)) || ''
    if (value === '') continue
    const content = read(value)
    if (content === undefined) {
      const shown = JSON.stringify(value.slice(0, SHOWN_CHARACTERS))
      throw new JsonRpcError(
        JSON_RPC_CODES.INVALID_PARAMS,
        `invalid params: the query parameter ${name} is ${shown}; it must be ${allowed}`,
      )
    }
    members[member] = content
  }
  return members
}
