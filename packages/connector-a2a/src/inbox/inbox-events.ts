import type { JsonObject } from '@signalbox/http-kit'
import { InboxError } from '@signalbox/registry'

import type { TaskPhase } from '../runs/seen-task.ts'
import { phaseOf } from '../runs/seen-task.ts'
import { isObject, STATES_10, StreamTranslation, UntranslatableError } from '../wire/index.ts'
import type { ParkedRun } from './parked-index.ts'
import type { TaskEnd } from './task-log.ts'

/** The members of a StreamResponse, and the member of each that names the task. */
const MEMBERS = [
  ['task', 'id'],
  ['statusUpdate', 'taskId'],
  ['artifactUpdate', 'taskId'],
  ['message', 'taskId'],
] as const

/** Events of a lessee with the ids of their task, and the phase of the task after them. */
export interface CompleteEvents {
  readonly complete: readonly JsonObject[]
  readonly phase: TaskPhase
}

/**
 * Returns the events of a lessee with the ids of their task.
 * @throws InboxError EVENT_INVALID for an event that is not valid, or that follows the end
 */
export function completeEvents(events: readonly JsonObject[], state: ParkedRun): CompleteEvents {
  const complete = events.map((event, i) => completeEvent(event, state, `events[${i}]`))
  const ended = complete.findIndex((event) => phaseAfter(event) !== 'open')
  if (ended !== -1 && ended < complete.length - 1) {
    throw invalid(`events[${ended + 1}] follows the event that ends the delivery; send no events after it`)
  }
  const last = complete.at(-1)
  return { complete, phase: last === undefined ? 'open' : phaseAfter(last) }
}

/** The most events and bytes of one task. */
const MAX_EVENTS = 10_000
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Checks that a task has space for more events. One that ends it always has.
 * @throws InboxError EVENT_INVALID
 */
export function assertBounded(events: readonly JsonObject[], end: TaskEnd, phase: TaskPhase): void {
  if (end.number === 0 || (events.length <= 1 && phase !== 'open')) return
  const count = end.sequence + events.length
  const bytes = (end.delivery?.total ?? 0) + JSON.stringify(events).length
  if (count <= MAX_EVENTS && bytes <= MAX_BYTES) return
  throw invalid(`the task would have ${count} events and ${bytes} bytes; the most are ${MAX_EVENTS} and ${MAX_BYTES}`)
}

/**
 * Returns an event of a lessee with the ids of its task, which it need not repeat. A message completes the task: its
 * caller has the task already, and would wait for its end.
 * @param name The name of the event, for the error
 * @throws InboxError EVENT_INVALID for an event of another task, or one that is no StreamResponse of A2A 1.0
 */
function completeEvent(event: JsonObject, { contextId, run }: ParkedRun, name: string): JsonObject {
  const [member, idMember] = MEMBERS.find(([one]) => isObject(event[one])) ?? []
  const content = member === undefined ? undefined : event[member]
  if (member === undefined || idMember === undefined || !isObject(content)) {
    throw invalid(`${name} must be an object with one of "task", "statusUpdate", "artifactUpdate", "message"`)
  }
  const { [idMember]: id = run, contextId: context = contextId } = content
  if (id !== run)
    throw invalid(
      `${name}.${member}.${idMember} is ${JSON.stringify(id)}; it must be the id of the leased task, or absent`,
    )
  if (context !== contextId) throw invalid(`${name}.${member}.contextId must be that of the leased task, or absent`)
  const complete = { ...content, [idMember]: run, contextId, ...(member === 'message' ? ofAgent(content) : {}) }
  const result = { [member]: complete }
  try {
    new StreamTranslation('1.0', '0.3').next(result)
  } catch (error) {
    if (error instanceof UntranslatableError) throw invalid(`${name}: ${error.message}`)
    throw error
  }
  if (member !== 'message') return result
  const status = { state: 'TASK_STATE_COMPLETED', timestamp: new Date().toISOString(), message: complete }
  return { statusUpdate: { taskId: run, contextId, status } }
}

/**
 * Checks that each status of a lessee has a state of A2A 1.0: no caller could wait for another one.
 * @throws InboxError EVENT_INVALID
 */
export function assertStates(events: readonly JsonObject[]): void {
  for (const [i, event] of events.entries()) {
    for (const member of ['statusUpdate', 'task']) {
      const content = event[member]
      if (isObject(content)) assertState(content, `events[${i}].${member}.status.state`)
    }
  }
}

function assertState({ status }: JsonObject, name: string): void {
  const state = isObject(status) ? status['state'] : undefined
  if (typeof state === 'string' && STATES_10.includes(state)) return
  const given = state === undefined ? 'absent' : JSON.stringify(state).slice(0, 64)
  throw invalid(`${name} is ${given}; it must be one of ${STATES_10.join(', ')}`)
}

function ofAgent({ role = 'ROLE_AGENT' }: JsonObject): JsonObject {
  return { role }
}

/** Returns the phase of the task after an event. A message is a whole answer. */
export function phaseAfter({ message, statusUpdate, task }: JsonObject): TaskPhase {
  if (message !== undefined) return 'over'
  const { status } = isObject(statusUpdate) ? statusUpdate : isObject(task) ? task : {}
  return isObject(status) ? phaseOf(status['state']) : 'open'
}

function invalid(problem: string): InboxError {
  return new InboxError('EVENT_INVALID', problem)
}
