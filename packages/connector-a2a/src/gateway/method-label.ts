const LABELS: ReadonlySet<string> = new Set([
  'message/send',
  'message/stream',
  'tasks/get',
  'tasks/cancel',
  'tasks/send',
])

/** The method as a label for metrics: any other is `unknown`, so that callers cannot make up label values (A14). */
export function methodLabel(method: string): string {
  return LABELS.has(method) ? method : 'unknown'
}
