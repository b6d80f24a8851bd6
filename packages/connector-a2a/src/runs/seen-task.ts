import { isJsonObject } from '@signalbox/http-kit/internal'
import type { JsonObject } from '@signalbox/http-kit'

import { memberOf } from '../wire/index.ts'

/** The task of an event: its ids and its phase. */
export interface SeenTask {
  readonly taskId: string
  readonly contextId: string | undefined
  /** `open` for an event that has no state, such as an artifact. */
  readonly phase: TaskPhase
}

/** The phase of a task: it goes on, it waits for its client, or it is over. */
export type TaskPhase = 'open' | 'waiting' | 'over'

const PHASES: ReadonlyMap<unknown, TaskPhase> = new Map<unknown, TaskPhase>([
  ['completed', 'over'],
  ['failed', 'over'],
  ['rejected', 'over'],
  ['canceled', 'over'],
  ['input-required', 'waiting'],
  ['auth-required', 'waiting'],
])

/** Returns the phase of a state, in the spelling of either version of A2A. */
export function phaseOf(state: unknown): TaskPhase {
  if (typeof state !== 'string') return 'open'
  const name = state.startsWith('TASK_STATE_')
    ? state.slice('TASK_STATE_'.length).toLowerCase().replaceAll('_', '-')
    : state
  // The spelling of some releases of the protocol's definition.
  return PHASES.get(name === 'cancelled' ? 'canceled' : name) ?? 'open'
}

/** The members of a result of A2A 1.0 that name a task. */
const EVENTS_10 = ['task', 'statusUpdate', 'artifactUpdate'] as const

/** Returns the task that a JSON-RPC response names, in either version of A2A; undefined if it names none. */
export function seenTask(response: unknown): SeenTask | undefined {
  const result = isJsonObject(response) ? response['result'] : undefined
  if (!isJsonObject(result)) return undefined
  const { kind } = result
  if (kind === 'task') return seen(result, 'id')
  if (kind === 'status-update' || kind === 'artifact-update') return seen(result, 'taskId')
  for (const member of EVENTS_10) {
    const event = memberOf(result, member)
    if (isJsonObject(event)) return seen(event, member === 'task' ? 'id' : 'taskId')
  }
  return undefined
}

function seen(event: JsonObject, idMember: string): SeenTask | undefined {
  const taskId = memberOf(event, idMember)
  if (typeof taskId !== 'string' || taskId === '') return undefined
  const contextId = memberOf(event, 'contextId')
  const { status } = event
  return {
    taskId,
    contextId: typeof contextId === 'string' && contextId !== '' ? contextId : undefined,
    phase: isJsonObject(status) ? phaseOf(status['state']) : 'open',
  }
}
