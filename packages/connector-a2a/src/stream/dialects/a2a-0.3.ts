import { isJsonObject } from '@signalbox/http-kit'

import type { Reading, SourceObject } from './reading.ts'
import type { TaskPhase } from './task-state.ts'
import { readStatusUpdate, readTask } from './task-state.ts'

const PHASES: ReadonlyMap<unknown, TaskPhase> = new Map<unknown, TaskPhase>([
  ['completed', 'completed'],
  ['failed', 'failed'],
  ['rejected', 'failed'],
  ['canceled', 'failed'],
  ['input-required', 'interrupted'],
  ['auth-required', 'interrupted'],
])

/** Reads a result of A2A 0.3. Its member `kind` names its type. */
export function readA2a03({ text, value }: SourceObject): Reading | undefined {
  switch (value['kind']) {
    case 'status-update':
      return readStatusUpdate(phaseOf(value['status']), value['final'] === true, text)
    case 'artifact-update':
      return { type: 'artifact', payload: text }
    case 'task':
      return readTask(phaseOf(value['status']), text)
    case 'message':
      return { type: 'message', payload: text, ifEnded: 'done' }
    default:
      return undefined
  }
}

function phaseOf(status: unknown): TaskPhase {
  return (isJsonObject(status) ? PHASES.get(status['state']) : undefined) ?? 'open'
}
