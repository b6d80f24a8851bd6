import type { Reading } from './reading.ts'

/** The phase of a task, derived from its state. */
export type TaskPhase =
  /** Over, successfully. */
  | 'completed'
  /** Over: failed, rejected or canceled. */
  | 'failed'
  /** The agent waits for the client (input-required, auth-required). */
  | 'interrupted'
  | 'open'

/** Reads a task or a message. The stream ends when the agent ends it, not before. */
export function readTask(phase: TaskPhase, payload: string): Reading {
  return { type: 'message', payload, ifEnded: phase === 'interrupted' || phase === 'completed' ? 'done' : endOf(phase) }
}

/**
 * Reads an update of a task's status. A final state ends the stream, as does an interruption that
 * the agent marks as final.
 */
export function readStatusUpdate(phase: TaskPhase, final: boolean, payload: string): Reading {
  if (phase === 'completed' || (phase === 'interrupted' && final)) return { type: 'done', payload }
  if (phase === 'failed') return { type: 'error', payload }
  return { type: 'status_update', payload, ifEnded: phase === 'interrupted' ? 'done' : 'open' }
}

function endOf(phase: 'failed' | 'open'): 'error' | 'open' {
  return phase === 'failed' ? 'error' : 'open'
}
