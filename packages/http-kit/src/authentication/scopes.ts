import type { PolicyAction } from '@signalbox/broker-core'
import { POLICY_ACTIONS } from '@signalbox/broker-core'
import type { JWTPayload } from 'jose'

/** The scopes of access tokens. */
export const SCOPES = ['signalbox:read', 'signalbox:write', 'signalbox:agents', 'signalbox:manage'] as const

/** One of {@link SCOPES}. */
export type Scope = (typeof SCOPES)[number]

/** The scope that each action of the policy needs. No scope includes another. */
const SCOPE_OF: Readonly<Record<PolicyAction, Scope>> = {
  list: 'signalbox:read',
  peek: 'signalbox:read',
  read: 'signalbox:read',
  subscribe: 'signalbox:read',
  send: 'signalbox:write',
  receive: 'signalbox:write',
  respond: 'signalbox:write',
  call: 'signalbox:agents',
  register: 'signalbox:agents',
  manage: 'signalbox:manage',
}

/** Returns the scope that an action needs. */
export function scopeOf(action: PolicyAction): Scope {
  return SCOPE_OF[action]
}

/** Returns the actions that scopes allow. */
export function actionsOf(scopes: ReadonlySet<string>): ReadonlySet<PolicyAction> {
  return new Set(POLICY_ACTIONS.filter((action) => scopes.has(SCOPE_OF[action])))
}

/**
 * Returns the scopes of a token: the claim `scope`, else `scp`, as words in one string or as an array. Other scopes
 * than {@link SCOPES} are included.
 * @param prefix Removed from the start of each scope that has it
 */
export function scopesOf({ scope, scp }: JWTPayload, prefix: string): ReadonlySet<string> {
  const claim = scope ?? scp
  const words: readonly unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : []
  const names = words.filter((word) => typeof word === 'string')
  return new Set(names.map((name) => (name.startsWith(prefix) ? name.slice(prefix.length) : name)))
}
