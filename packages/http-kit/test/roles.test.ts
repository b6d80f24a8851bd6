import { expect, test } from 'vitest'

import type { Role } from '../src/index.ts'
import { hasRole, isRole, ROLES } from '../src/index.ts'

function held(roles: readonly Role[]): readonly Role[] {
  return ROLES.filter((role) => hasRole({ clientId: 'a', roles }, role))
}

test('S3 - a role includes those below it', () => {
  expect(held(['ReadOnly'])).toEqual(['ReadOnly'])
  expect(held(['ReadWrite'])).toEqual(['ReadOnly', 'ReadWrite'])
  expect(held(['Admin'])).toEqual(['ReadOnly', 'ReadWrite', 'Admin'])
  expect(held(['ReadOnly', 'Admin'])).toEqual(['ReadOnly', 'ReadWrite', 'Admin'])
})

test('S3 - a caller without roles holds none', () => {
  for (const role of ROLES) {
    expect(hasRole({ clientId: 'a' }, role)).toBe(false)
    expect(hasRole({ clientId: 'a', roles: [] }, role)).toBe(false)
  }
})

test('S3 - only the three names are roles, in exactly this spelling', () => {
  expect(ROLES.every(isRole)).toBe(true)
  for (const name of ['', 'admin', 'ADMIN', 'Admin ', 'Owner', 'toString', '__proto__'])
    expect(isRole(name)).toBe(false)
})
