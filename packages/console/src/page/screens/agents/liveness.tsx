import { Badge } from '../../components/badge.tsx'

/** The time before an expiry in which an agent is late, in ms. */
const SOON_MS = 15_000

interface LivenessProps {
  readonly agent: { readonly is_alive: boolean; readonly expires_at: string | null }
}

/** The state of an agent or an instance by its heartbeats. */
export function Liveness({ agent: { is_alive, expires_at } }: LivenessProps) {
  if (!is_alive) return <Badge kind="bad">Expired</Badge>
  if (expires_at !== null && Date.parse(expires_at) - Date.now() < SOON_MS)
    return <Badge kind="warning">Expires soon</Badge>
  return <Badge kind="good">Alive</Badge>
}
