import { isJsonObject } from '@signalbox/http-kit'

import { memberOf } from '../../wire/index.ts'
import type { Reading, SourceObject } from './reading.ts'
import type { TaskPhase } from './task-state.ts'
import { readStatusUpdate, readTask } from './task-state.ts'

const PHASES: ReadonlyMap<unknown, TaskPhase> = new Map<unknown, TaskPhase>([
  ['TASK_STATE_COMPLETED', 'completed'],
  ['TASK_STATE_FAILED', 'failed'],
  ['TASK_STATE_REJECTED', 'failed'],
  ['TASK_STATE_CANCELED', 'failed'],
  // The spelling of some releases of the protocol's definition.
  ['TASK_STATE_CANCELLED', 'failed'],
  ['TASK_STATE_INPUT_REQUIRED', 'interrupted'],
  ['TASK_STATE_AUTH_REQUIRED', 'interrupted'],
])

/**
 * Reads a result of A2A 1.0. The name of its one member is its type. The payload is the whole
 * result.
 */
export function readA2a10({ text, value }: SourceObject): Reading | undefined {
  const { task, message } = value
  const statusUpdate = memberOf(value, 'statusUpdate')
  const artifactUpdate = memberOf(value, 'artifactUpdate')
  if (isJsonObject(statusUpdate)) {
    return readStatusUpdate(phaseOf(statusUpdate['status']), statusUpdate['final'] === true, text)
  }
  if (isJsonObject(artifactUpdate)) return { type: 'artifact', payload: text }
  if (isJsonObject(task)) return readTask(phaseOf(task['status']), text)
  return isJsonObject(message) ? { type: 'message', payload: text, ifEnded: 'done' } : undefined
}

function phaseOf(status: unknown): TaskPhase {
  return (isJsonObject(status) ? PHASES.get(status['state']) : undefined) ?? 'open'
}
