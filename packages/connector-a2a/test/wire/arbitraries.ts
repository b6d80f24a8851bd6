import * as fc from 'fast-check'

/** Arbitrary values of A2A 1.0 that 0.3 can hold too, as JSON. */

const id = fc.string({ minLength: 1, maxLength: 8 })
const text = fc.string({ maxLength: 12 })
const name = fc.string({ minLength: 1, maxLength: 8 })
const names = fc.array(name, { minLength: 1, maxLength: 3 })
const json = fc.jsonValue({ maxDepth: 3 })
const object = fc.dictionary(fc.stringMatching(/^[a-z_$.]{1,6}$/), json, {
  minKeys: 1,
  maxKeys: 3,
  noNullPrototype: true,
})
const base64 = fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString('base64'))
const fileMembers = { filename: name, mediaType: name, metadata: object }

/** Data without `null`, which the SDK cannot hold. */
const data = json.filter((value) => value !== null)

const part = fc.oneof(
  record({ text }, { metadata: object }),
  record({ raw: base64 }, fileMembers),
  record({ url: fc.webUrl() }, fileMembers),
  record({ data }, { metadata: object }),
)

const parts = fc.array(part, { minLength: 1, maxLength: 4 })

const message = record(
  { messageId: id, role: fc.constantFrom('ROLE_USER', 'ROLE_AGENT'), parts },
  { contextId: id, taskId: id, metadata: object, extensions: names, referenceTaskIds: names },
)

const timestamp = fc
  .date({ min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true })
  .map((date) => date.toISOString())

const state = fc.constantFrom(
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_AUTH_REQUIRED',
  'TASK_STATE_UNSPECIFIED',
)

const status = record({ state }, { message, timestamp })

const artifact = record({ artifactId: id, parts }, { name, description: name, metadata: object, extensions: names })

const task = record(
  { id, status },
  {
    contextId: id,
    artifacts: fc.array(artifact, { minLength: 1, maxLength: 2 }),
    history: fc.array(message, { minLength: 1, maxLength: 2 }),
    metadata: object,
  },
)

const statusUpdate = record({ taskId: id, status }, { contextId: id, metadata: object })

const artifactUpdate = record(
  { taskId: id, artifact },
  { contextId: id, append: fc.constant(true), lastChunk: fc.constant(true), metadata: object },
)

const answer = fc.oneof(record({ task }, {}), record({ message }, {}))

const event = fc.oneof(answer, record({ statusUpdate }, {}), record({ artifactUpdate }, {}))

const authentication = record({ scheme: name }, { credentials: name })
const pushMembers = { id, token: name, authentication }

const pushConfig = record({ url: fc.webUrl() }, pushMembers)

const taskPushConfig = record({ taskId: id, url: fc.webUrl() }, pushMembers)

const configuration = record(
  { returnImmediately: fc.boolean() },
  { acceptedOutputModes: names, historyLength: fc.nat(), taskPushNotificationConfig: pushConfig },
)

/** Params of 1.0 by operation. */
export const params = {
  send: record({ message }, { configuration, metadata: object }),
  stream: record({ message }, { configuration, metadata: object }),
  get: record({ id }, { historyLength: fc.nat() }),
  cancel: record({ id }, { metadata: object }),
  resubscribe: record({ id }, {}),
  'push-create': taskPushConfig,
  'push-get': record({ taskId: id, id }, {}),
  'push-list': record({ taskId: id }, {}),
  'push-delete': record({ taskId: id, id }, {}),
}

/** Results of 1.0 by operation; of streams, one event. */
export const results = {
  send: answer,
  stream: event,
  get: task,
  cancel: task,
  resubscribe: event,
  'push-create': taskPushConfig,
  'push-get': taskPushConfig,
  'push-list': record({ configs: fc.array(taskPushConfig, { minLength: 1, maxLength: 3 }) }, {}),
  'push-delete': fc.constant(null),
}

/** Records of required and optional members, as they are after a trip through JSON: no -0. */
function record(
  required: Record<string, fc.Arbitrary<unknown>>,
  optional: Record<string, fc.Arbitrary<unknown>>,
): fc.Arbitrary<{ [name: string]: unknown }> {
  return fc
    .record({ ...required, ...optional }, { requiredKeys: Object.keys(required), noNullPrototype: true })
    .map((value) => Object.fromEntries(Object.entries(value).map(([member, content]) => [member, asJson(content)])))
}

function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

/** Returns a value with the names that Protocol Buffers has for its members, as readers of JSON accept them too. */
export function withProtoNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withProtoNames)
  if (typeof value !== 'object' || value === null) return value
  const renamed = Object.entries(value).map(([name, member]) => [
    name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    withProtoNames(member),
  ])
  return Object.fromEntries(renamed)
}
