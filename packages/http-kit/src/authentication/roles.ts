import type { Caller } from '@signalbox/broker-core'

/** The roles of operators, in rising order. Each role includes those before it. */
export const ROLES = ['ReadOnly', 'ReadWrite', 'Admin'] as const

/** One of {@link ROLES}. */
export type Role = (typeof ROLES)[number]

/** Returns `true` if the name is one of {@link ROLES}, in the same letter case. */
export function isRole(name: string): name is Role {
  return ROLES.some((role) => role === name)
}

/** Returns `true` if the caller has this role or a higher one. A caller without roles has none. */
export function hasRole({ roles = [] }: Caller & { readonly roles?: readonly Role[] }, role: Role): boolean {
  const wanted = ROLES.indexOf(role)
  return roles.some((held) => ROLES.indexOf(held) >= wanted)
}
