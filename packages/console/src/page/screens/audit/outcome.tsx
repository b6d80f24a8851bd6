import { Badge } from '../../components/badge.tsx'
import type { AuditEntry } from './read-audit.ts'

/** The end of an action in a word. */
export function Outcome({ outcome }: Pick<AuditEntry, 'outcome'>) {
  if (outcome === 'success') return <Badge kind="good">Success</Badge>
  if (outcome === 'denied') return <Badge kind="warning">Denied</Badge>
  return <Badge kind="bad">Failure</Badge>
}
