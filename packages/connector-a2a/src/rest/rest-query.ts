import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import type { Operation } from '../wire/index.ts'
import { protoName } from '../wire/index.ts'

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
