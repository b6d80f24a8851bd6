import type { JsonObject } from '@signalbox/http-kit'

import { defined, isObject, utcTimestamp } from './json.ts'
import type { MemberReader } from './member-reader.ts'
import type { WireVersion } from './methods.ts'

/** Translates a message. */
export function translateMessage(message: MemberReader, to: WireVersion): JsonObject {
  return defined({
    kind: to === '0.3' ? 'message' : undefined,
    messageId: message.requiredString('messageId'),
    contextId: message.string('contextId'),
    taskId: message.string('taskId'),
    role: translateRole(message, to),
    parts: translateParts(message, to),
    metadata: message.object('metadata'),
    extensions: message.strings('extensions'),
    referenceTaskIds: message.strings('referenceTaskIds'),
  })
}

/** Translates a task. */
export function translateTask(task: MemberReader, to: WireVersion): JsonObject {
  return defined({
    kind: to === '0.3' ? 'task' : undefined,
    id: task.requiredString('id'),
    contextId: translateContextId(task, to),
    status: translateStatus(task, to),
    artifacts: task.list('artifacts', (artifact) => translateArtifact(artifact, to)),
    history: task.list('history', (message) => translateMessage(message, to)),
    metadata: task.object('metadata'),
  })
}

/** Translates a status update. `final` is `true` in 0.3 if the state is terminal. */
export function translateStatusUpdate(update: MemberReader, to: WireVersion): JsonObject {
  const status = translateStatus(update, to)
  return defined({
    kind: to === '0.3' ? 'status-update' : undefined,
    taskId: update.requiredString('taskId'),
    contextId: translateContextId(update, to),
    status,
    final: to === '0.3' ? TERMINAL_03.has(status['state']) : undefined,
    metadata: update.object('metadata'),
  })
}

/** Translates an artifact update. */
export function translateArtifactUpdate(update: MemberReader, to: WireVersion): JsonObject {
  return defined({
    kind: to === '0.3' ? 'artifact-update' : undefined,
    taskId: update.requiredString('taskId'),
    contextId: translateContextId(update, to),
    artifact: translateArtifact(update.requiredChild('artifact'), to),
    append: update.boolean('append'),
    lastChunk: update.boolean('lastChunk'),
    metadata: update.object('metadata'),
  })
}

/** The states of A2A 0.3 after which a task does not change. */
export const TERMINAL_03: ReadonlySet<unknown> = new Set(['completed', 'failed', 'canceled', 'rejected'])

/** 0.3 requires the member, 1.0 omits it if it is empty. */
function translateContextId(from: MemberReader, to: WireVersion): string | undefined {
  return from.string('contextId') ?? (to === '0.3' ? '' : undefined)
}

function translateStatus(from: MemberReader, to: WireVersion): JsonObject {
  // Writers of 1.0 omit a status without values.
  if (to === '0.3' && !from.has('status')) return { state: 'unknown' }
  const status = from.requiredChild('status')
  const message = status.child('message')
  return defined({
    state: translateState(status, to),
    message: message === undefined ? undefined : translateMessage(message, to),
    timestamp: utcTimestamp(status.value['timestamp']),
  })
}

function translateArtifact(artifact: MemberReader, to: WireVersion): JsonObject {
  return defined({
    artifactId: artifact.requiredString('artifactId'),
    name: artifact.string('name'),
    description: artifact.string('description'),
    parts: translateParts(artifact, to),
    metadata: artifact.object('metadata'),
    extensions: artifact.strings('extensions'),
  })
}

function translateParts(from: MemberReader, to: WireVersion): JsonObject[] {
  // Writers of 1.0 omit an empty list.
  if (to === '0.3' && !from.has('parts')) return []
  return from.requiredList('parts', (part) => translatePart(part, to))
}

/**
 * The member of a data part's metadata that marks `data` as wrapped in `{value}`. 0.3 allows only objects as data, 1.0
 * any JSON. The official SDKs use the same mark.
 */
const WRAPPED = 'data_part_compat'

/** Translates a part of a message or an artifact. */
function translatePart(part: MemberReader, to: WireVersion): JsonObject {
  return to === '1.0' ? partTo10(part) : partTo03(part)
}

function partTo03(part: MemberReader): JsonObject {
  const text = part.text('text')
  const raw = part.text('raw')
  const url = part.text('url')
  const metadata = part.object('metadata')
  const contents = [text, raw, url].filter((content) => content !== undefined).length
  // `null` is valid data, and no value of the other members.
  const hasData = part.has('data') || (contents === 0 && Object.hasOwn(part.value, 'data'))
  if (contents + Number(hasData) !== 1) throw part.invalidSelf('an object with one of "text", "raw", "url" and "data"')
  if (text !== undefined) return defined({ kind: 'text', text, metadata })
  if (hasData) return dataTo03(part.value['data'], metadata)
  const file = defined({ bytes: raw, uri: url, mimeType: part.string('mediaType'), name: part.string('filename') })
  return defined({ kind: 'file', file, metadata })
}

function dataTo03(data: unknown, metadata: JsonObject | undefined): JsonObject {
  if (isObject(data)) return defined({ kind: 'data', data, metadata })
  return { kind: 'data', data: { value: data }, metadata: { ...metadata, [WRAPPED]: true } }
}

function partTo10(part: MemberReader): JsonObject {
  const metadata = part.object('metadata')
  switch (part.string('kind') ?? inferKind(part)) {
    case 'text': {
      const text = part.text('text')
      if (text === undefined) throw part.invalid('text', 'a string')
      return defined({ text, metadata })
    }
    case 'file':
      return defined({ ...fileTo10(part.requiredChild('file')), metadata })
    case 'data':
      return dataTo10(part.requiredChild('data').value, metadata)
    default:
      throw part.invalid('kind', '"text", "file" or "data"')
  }
}

/** Returns the kind of a part without `kind`, as hand-written callers send it. */
function inferKind(part: MemberReader): string | undefined {
  return ['text', 'file', 'data'].find((kind) => part.has(kind))
}

function fileTo10(file: MemberReader): JsonObject {
  const raw = file.text('bytes')
  const url = raw === undefined ? file.text('uri') : undefined
  if (raw === undefined && url === undefined) throw file.invalidSelf('an object with "bytes" or "uri"')
  return { raw, url, filename: file.string('name'), mediaType: file.string('mimeType') }
}

function dataTo10(data: JsonObject, metadata: JsonObject | undefined): JsonObject {
  if (metadata?.[WRAPPED] !== true) return defined({ data, metadata })
  const { [WRAPPED]: _, ...rest } = metadata
  return defined({
    data: Object.hasOwn(data, 'value') ? data['value'] : data,
    metadata: Object.keys(rest).length === 0 ? undefined : rest,
  })
}

const STATES_BY_10: ReadonlyMap<string, string> = new Map([
  ['TASK_STATE_UNSPECIFIED', 'unknown'],
  ['TASK_STATE_SUBMITTED', 'submitted'],
  ['TASK_STATE_WORKING', 'working'],
  ['TASK_STATE_COMPLETED', 'completed'],
  ['TASK_STATE_FAILED', 'failed'],
  ['TASK_STATE_CANCELED', 'canceled'],
  ['TASK_STATE_INPUT_REQUIRED', 'input-required'],
  ['TASK_STATE_REJECTED', 'rejected'],
  ['TASK_STATE_AUTH_REQUIRED', 'auth-required'],
])

const STATES_BY_03: ReadonlyMap<string, string> = new Map([...STATES_BY_10].map(([name10, name03]) => [name03, name10]))

/** The states of a task in A2A 1.0 that an event can have. */
export const STATES_10: readonly string[] = [...STATES_BY_10.keys()].filter(
  (name) => STATES_BY_10.get(name) !== 'unknown',
)

/** The spelling of some releases of the protocol's definition. */
const CANCELLED = 'TASK_STATE_CANCELLED'

/** Translates the state of a status. A state that the source version does not define becomes the unknown state. */
function translateState(status: MemberReader, to: WireVersion): string {
  const state = status.string('state') ?? ''
  if (to === '1.0') return STATES_BY_03.get(state) ?? 'TASK_STATE_UNSPECIFIED'
  return STATES_BY_10.get(state === CANCELLED ? 'TASK_STATE_CANCELED' : state) ?? 'unknown'
}

/**
 * Translates the role of a message. A message of 1.0 without a role is the agent's: Protocol Buffers omits unset
 * members, and only agents can send such a message here.
 */
function translateRole(message: MemberReader, to: WireVersion): string {
  const role = message.string('role')
  if (to === '1.0') {
    if (role === 'user') return 'ROLE_USER'
    if (role === 'agent') return 'ROLE_AGENT'
    throw message.invalid('role', '"user" or "agent"')
  }
  if (role === 'ROLE_USER') return 'user'
  if (role === undefined || role === 'ROLE_AGENT' || role === 'ROLE_UNSPECIFIED') return 'agent'
  throw message.invalid('role', ROLES_10)
}

/** Requires the role of a message that a caller sends. */
export function requireRole(message: MemberReader): void {
  const role = message.string('role')
  if (role === undefined || role === 'ROLE_UNSPECIFIED') throw message.invalid('role', ROLES_10)
}

const ROLES_10 = '"ROLE_USER" or "ROLE_AGENT"'
