import type { ComponentChildren } from 'preact'

import type { Role } from '../session/operator.ts'
import { useMay } from '../session/operator.ts'

interface NeedsRoleProps {
  readonly role: Role
  /** What the role allows, such as `To call a tool`. */
  readonly to: string
  readonly children: ComponentChildren
}

/** Offers an action to operators with the role, and tells the others which role they need. */
export function NeedsRole({ role, to, children }: NeedsRoleProps) {
  if (useMay(role)) return <>{children}</>
  return (
    <p class="muted">
      {to}, you need the role {role}.
    </p>
  )
}
