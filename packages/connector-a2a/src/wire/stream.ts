import type { JsonObject } from '@signalbox/http-kit'

import { isObject } from './json.ts'
import { MemberReader } from './member-reader.ts'
import type { WireVersion } from './methods.ts'
import { translateArtifactUpdate, translateMessage, translateStatusUpdate, translateTask } from './tasks.ts'

/**
 * Translates the results of one event stream.
 *
 * To 0.3: a status that waits for input is held until the next event or the end, because only the end shows that it is
 * final. A status that waits for credentials is not held: the caller may provide them in another way, and the agent
 * continues on the same stream. To 1.0: a stream that starts with an update gets a task before it, because 1.0 requires one.
 */
export class StreamTranslation {
  readonly #from: WireVersion
  readonly #to: WireVersion
  #started = false
  #held: JsonObject | undefined

  constructor(from: WireVersion, to: WireVersion) {
    this.#from = from
    this.#to = to
  }

  /**
   * Returns the results to send after a result of the agent: none, one or two.
   * @throws UntranslatableError if the result is not an event of its version
   */
  next(result: unknown): unknown[] {
    if (this.#from === this.#to) return [result]
    const event = translateEvent(new MemberReader(result, 'result'), this.#to)
    return this.#to === '0.3' ? this.#nextOf03(event) : this.#nextOf10(event)
  }

  /** Returns `true` while a status is held. A gateway may send it before the end if the agent stays silent. */
  get holds(): boolean {
    return this.#held !== undefined
  }

  /** Returns the results that remain to be sent at the end: a held status, which is final now. */
  end(): unknown[] {
    const held = this.#held
    this.#held = undefined
    return held === undefined ? [] : [{ ...held, final: true }]
  }

  #nextOf03(event: JsonObject): unknown[] {
    const before = this.#held === undefined ? [] : [this.#held]
    this.#held = waitsForInput(event) ? event : undefined
    return this.#held === undefined ? [...before, event] : before
  }

  #nextOf10(event: JsonObject): unknown[] {
    const task = this.#started ? undefined : taskBefore(event)
    this.#started = true
    return task === undefined ? [event] : [{ task }, event]
  }
}

function waitsForInput({ kind, status }: JsonObject): boolean {
  return kind === 'status-update' && isObject(status) && status['state'] === 'input-required'
}

/**
 * Returns a task for an update. Its state is open even if the update's is not: a client that read a terminal state
 * could stop before the update, which has the message.
 */
function taskBefore({ statusUpdate, artifactUpdate }: JsonObject): JsonObject | undefined {
  const update = statusUpdate ?? artifactUpdate
  if (!isObject(update)) return undefined
  const { taskId: id, contextId, status } = update
  const submitted = isObject(status) && status['state'] === SUBMITTED
  const state = submitted ? SUBMITTED : 'TASK_STATE_WORKING'
  return { id, ...(contextId === undefined ? {} : { contextId }), status: { state } }
}

const SUBMITTED = 'TASK_STATE_SUBMITTED'

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
