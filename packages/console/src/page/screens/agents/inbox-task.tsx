import type { GetData } from '../../api/client.ts'
import { Badge } from '../../components/values.tsx'
import type { BadgeKind } from '../../components/values.tsx'

/** A task of an inbox. */
export type InboxTask = GetData<'/api/agent_tasks'>['items'][number]

/** Returns `true` for a task that is not over and that nobody has canceled. */
export function isCancelable({ phase, cancel_requested }: InboxTask): boolean {
  return phase !== 'done' && !cancel_requested
}

const PHASES: Readonly<Record<InboxTask['phase'], readonly [BadgeKind, string]>> = {
  stored: ['neutral', 'Waiting'],
  delivered: ['neutral', 'Delivered'],
  working: ['neutral', 'Working'],
  waiting: ['warning', 'Waits for input'],
  done: ['good', 'Over'],
}

const REASONS: Readonly<Record<string, string>> = {
  DELIVERY_EXPIRED: 'Expired',
  DELIVERY_FAILED: 'Not delivered',
  REJECTED: 'Rejected',
  CANCELED: 'Canceled',
}

/** The state of a task in words. */
export function TaskPhase({ task: { phase, reason, cancel_requested: isAsked } }: { readonly task: InboxTask }) {
  if (phase === 'done' && reason !== undefined) {
    return <Badge kind={reason === 'CANCELED' ? 'neutral' : 'bad'}>{REASONS[reason] ?? reason}</Badge>
  }
  if (isAsked && phase !== 'done') return <Badge kind="warning">To be canceled</Badge>
  const [kind, text] = PHASES[phase]
  return <Badge kind={kind}>{text}</Badge>
}
