import type { Reading } from './reading.ts'

/** What a state of a task says about its end. */
export type TaskPhase =
  /** Over, successfully. */
  | 'completed'
  /** Over: failed, rejected or canceled. */
  | 'failed'
  /** The agent waits for the client (input-required, auth-required). */
  | 'interrupted'
  | 'open'

/** A task, or a message: the stream is over when the agent ends it, not before (A9). */
export function readTask(phase: TaskPhase, payload: string): Reading {
  return { type: 'message', payload, ifEnded: phase === 'interrupted' || phase === 'completed' ? 'done' : endOf(phase) }
}

/** An update of a task's status: over with an end state, or with an interruption that the agent says is final (A8). */
export function readStatusUpdate(phase: TaskPhase, final: boolean, payload: string): Reading {
  if (phase === 'completed' || (phase === 'interrupted' && final)) return { type: 'done', payload }
  if (phase === 'failed') return { type: 'error', payload }
  return { type: 'status_update', payload, ifEnded: phase === 'interrupted' ? 'done' : 'open' }
}

function endOf(phase: 'failed' | 'open'): 'error' | 'open' {
  return phase === 'failed' ? 'error' : 'open'
}
