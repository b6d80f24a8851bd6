import type { GetData } from '../../api/client.ts'
import type { BadgeKind } from '../../components/badge.tsx'
import { Badge } from '../../components/badge.tsx'

export type ListedTask = GetData<'/api/tasks'>['items'][number]

const KINDS: Readonly<Record<string, readonly [BadgeKind, string]>> = {
  working: ['neutral', 'Working'],
  input_required: ['warning', 'Waits for input'],
  completed: ['good', 'Completed'],
  failed: ['bad', 'Failed'],
  cancelled: ['neutral', 'Cancelled'],
}

/** The state of a task in words. */
export function TaskStatus({ status }: { readonly status: string }) {
  const [kind, text] = KINDS[status] ?? ['neutral', status]
  return <Badge kind={kind}>{text}</Badge>
}

/** Returns `true` while a task can be cancelled. */
export function isUnderWay(status: string): boolean {
  return status === 'working' || status === 'input_required'
}
