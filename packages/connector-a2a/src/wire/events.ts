import type { JsonObject } from '@signalbox/http-kit'
import type { WireVersion } from './methods.ts'

import type { MemberReader } from './member-reader.ts'
import { translateArtifactUpdate, translateMessage, translateStatusUpdate, translateTask } from './tasks.ts'

type Translate = (from: MemberReader, to: WireVersion) => JsonObject

interface EventType {
  /** The member of a 1.0 result that has the event. */
  readonly member: string
  /** The `kind` of the event in 0.3. */
  readonly kind: string
  readonly translate: Translate
}

const TASK: EventType = { member: 'task', kind: 'task', translate: translateTask }
const MESSAGE: EventType = { member: 'message', kind: 'message', translate: translateMessage }
const STATUS: EventType = { member: 'statusUpdate', kind: 'status-update', translate: translateStatusUpdate }
const ARTIFACT: EventType = { member: 'artifactUpdate', kind: 'artifact-update', translate: translateArtifactUpdate }

const EVENTS = [TASK, MESSAGE, STATUS, ARTIFACT]
const ANSWERS = [TASK, MESSAGE]

/** Translates an event of a stream. */
export function translateEvent(event: MemberReader, to: WireVersion): JsonObject {
  return translateOneOf(EVENTS, event, to)
}

/** Translates the answer to a message: a task or a message. */
export function translateTaskOrMessage(answer: MemberReader, to: WireVersion): JsonObject {
  return translateOneOf(ANSWERS, answer, to)
}

function translateOneOf(types: readonly EventType[], event: MemberReader, to: WireVersion): JsonObject {
  if (to === '0.3') {
    const type = types.find(({ member }) => event.has(member))
    if (type === undefined) throw event.invalidSelf(`an object with one of ${quoted(types, 'member')}`)
    return type.translate(event.requiredChild(type.member), to)
  }
  const kind = event.string('kind')
  const type = types.find((candidate) => candidate.kind === kind)
  if (type === undefined) throw event.invalid('kind', `one of ${quoted(types, 'kind')}`)
  return { [type.member]: type.translate(event, to) }
}

function quoted(types: readonly EventType[], name: 'member' | 'kind'): string {
  return types.map((type) => `"${type[name]}"`).join(', ')
}
