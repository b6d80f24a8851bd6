import type { Caller } from '@signalbox/broker-core'

/** What an operator may do, in rising order: each role includes those before it (S3). */
export const ROLES = ['ReadOnly', 'ReadWrite', 'Admin'] as const

export type Role = (typeof ROLES)[number]

/** Whether the name is one of {@link ROLES}; case counts. */
export function isRole(name: string): name is Role {
  return ROLES.some((role) => role === name)
}

/** Whether the caller holds this role or a higher one. Without roles a caller holds none (S3). */
export function hasRole({ roles = [] }: Caller & { readonly roles?: readonly Role[] }, role: Role): boolean {
  const wanted = ROLES.indexOf(role)
  return roles.some((held) => ROLES.indexOf(held) >= wanted)
}
