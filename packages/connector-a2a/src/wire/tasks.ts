import type { JsonObject } from '@signalbox/http-kit'
import type { WireVersion } from './methods.ts'

import { translateRole, translateState } from './enums.ts'
import { defined } from './json.ts'
import type { MemberReader } from './member-reader.ts'
import { translatePart } from './parts.ts'
import { utcTimestamp } from './timestamp.ts'

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
