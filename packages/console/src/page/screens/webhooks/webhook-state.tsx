import type { GetData } from '../../api/client.ts'
import type { BadgeKind } from '../../components/badge.tsx'
import { Badge } from '../../components/badge.tsx'

type State = GetData<'/api/webhooks'>['items'][number]['state']

const STATES: Readonly<Record<State, readonly [BadgeKind, string]>> = {
  active: ['good', 'Active'],
  failing: ['bad', 'Failing'],
  paused: ['warning', 'Paused'],
  disabled: ['bad', 'Disabled'],
}

export function WebhookState({ state }: { readonly state: State }) {
  const [kind, text] = STATES[state]
  return <Badge kind={kind}>{text}</Badge>
}
