import type { NativeSpeech } from '../native/speech.ts'

const LABELS: ReadonlySet<string> = new Set([
  'message/send',
  'message/stream',
  'tasks/get',
  'tasks/cancel',
  'tasks/send',
])

/** The label of the one method that A2A 0.3 does not have. */
const LIST = 'tasks/list'

/**
 * Returns the method as a metric label: for official calls its name in A2A 0.3. Any other method is
 * `unknown`, so callers cannot create label values.
 */
export function methodLabel(method: string, speech?: NativeSpeech): string {
  if (speech?.method !== undefined) return speech.method.names['0.3'] ?? LIST
  return LABELS.has(method) ? method : 'unknown'
}
