const LABELS: ReadonlySet<string> = new Set([
  'message/send',
  'message/stream',
  'tasks/get',
  'tasks/cancel',
  'tasks/send',
])

/**
 * Returns the method as a metric label. Any other method is `unknown`, so callers cannot create
 * label values.
 */
export function methodLabel(method: string): string {
  return LABELS.has(method) ? method : 'unknown'
}
