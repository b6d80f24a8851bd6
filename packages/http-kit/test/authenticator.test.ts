import { ANONYMOUS, POLICY_ACTIONS } from '@signalbox/broker-core'
import type { JWTPayload } from 'jose'
import { testFile } from '@signalbox/testkit/test-folder'
import { describe, expect, onTestFinished, test } from 'vitest'

import {
  anonymousAuthenticator,
  AuthenticationError,
  bearerAuthenticator,
  hasRole,
  isRole,
  ROLES,
  scopeOf,
  SCOPES,
} from '../src/index.ts'
import { authenticationFailed } from '../src/internal.ts'
import type { Identity, OAuthTokenOptions, Role } from '../src/index.ts'
import { ecKey, pem, request, token } from './support/tokens.ts'

test('authentication - while it is off, every caller is anonymous, with or without a token', () => {
  expect(anonymousAuthenticator.authenticate({ headers: {}, rawHeaders: [] })).toBe(ANONYMOUS)
  expect(
    anonymousAuthenticator.authenticate({
      headers: { authorization: 'Bearer x' },
      rawHeaders: ['Authorization', 'Bearer x'],
    }),
  ).toBe(ANONYMOUS)
})

test('RPC-9 - a failed authentication is -32010 and says nothing of its reason', () => {
  expect(authenticationFailed('5')).toMatchObject({ code: -32010, message: 'Authentication failed', id: '5' })
  expect(new AuthenticationError('the key is unknown')).toBeInstanceOf(Error)
})

function held(roles: readonly Role[]): readonly Role[] {
  return ROLES.filter((role) => hasRole({ clientId: 'a', roles }, role))
}

test('S3 - a role includes those below it', () => {
  expect(held(['ReadOnly'])).toEqual(['ReadOnly'])
  expect(held(['ReadWrite'])).toEqual(['ReadOnly', 'ReadWrite'])
  expect(held(['Admin'])).toEqual(['ReadOnly', 'ReadWrite', 'Admin'])
  expect(held(['ReadOnly', 'Admin'])).toEqual(['ReadOnly', 'ReadWrite', 'Admin'])
})

test('S3 - a caller without roles has no role', () => {
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

const KEY = ecKey('one')

async function identity(claims: JWTPayload, oauth?: OAuthTokenOptions): Promise<Identity> {
  const authenticator = bearerAuthenticator({
    keys: { keyFile: testFile(pem(KEY)) },
    ...(oauth === undefined ? {} : { oauth }),
  })
  onTestFinished(() => authenticator[Symbol.dispose]())
  return authenticator.authenticate(request(`Bearer ${await token(KEY, claims)}`))
}

async function actionsOf(claims: JWTPayload, oauth: OAuthTokenOptions = {}): Promise<readonly string[]> {
  return [...((await identity(claims, oauth)).actions ?? [])]
}

async function callerOf(claims: JWTPayload): Promise<string> {
  const { clientId } = await identity({ ClientID: undefined, ...claims }, {})
  return clientId
}

test('S11 - scopes allow exactly the actions of the table', () => {
  const table = SCOPES.map((scope) => [scope, POLICY_ACTIONS.filter((action) => scopeOf(action) === scope)])
  expect(Object.fromEntries(table)).toEqual({
    'signalbox:read': ['peek', 'read', 'subscribe', 'list'],
    'signalbox:write': ['send', 'receive', 'respond'],
    'signalbox:agents': ['call', 'register'],
    'signalbox:manage': ['manage'],
  })
})

describe('with the option oauth', () => {
  test.each<[string, JWTPayload, readonly string[]]>([
    ['no claim', {}, []],
    ['words', { scope: 'openid signalbox:agents  signalbox:manage' }, ['manage', 'call', 'register']],
    ['an array', { scope: ['signalbox:manage', 7, null] }, ['manage']],
    ['scp as words', { scp: 'signalbox:manage' }, ['manage']],
    ['scp as an array', { scp: ['signalbox:manage'] }, ['manage']],
    ['scope before scp', { scope: '', scp: 'signalbox:manage' }, []],
    ['another type', { scope: { 'signalbox:manage': true } }, []],
    ['names that are similar', { scope: 'signalbox signalbox: manage signalbox:Manage xsignalbox:manage' }, []],
  ])('S11 - scopes are read from the token: %s', async (_name, claims, actions) => {
    expect(await actionsOf(claims)).toEqual(actions)
  })

  test('S11 - a prefix is removed where a scope has it', async () => {
    const oauth = { scopePrefix: 'api://box/' }
    expect(await actionsOf({ scope: 'api://box/signalbox:manage' }, oauth)).toEqual(['manage'])
    expect(await actionsOf({ scope: 'signalbox:manage' }, oauth)).toEqual(['manage'])
    expect(await actionsOf({ scope: 'api://other/signalbox:manage' }, oauth)).toEqual([])
    expect(await actionsOf({ scope: 'api://box/signalbox:manage' })).toEqual([])
  })

  test('S12 - the claims name the user before the program', async () => {
    expect(await callerOf({ client_id: 'chat', sub: 'alice' })).toBe('alice')
    expect(await callerOf({ client_id: 'chat' })).toBe('chat')
    expect(await callerOf({ client_id: 'chat', sub: 'alice', ClientID: 'carol' })).toBe('carol')
    await expect(callerOf({})).rejects.toThrow('it must have one of the claims ClientID, sub, client_id')
  })

  test('S12 - roles need the scope signalbox:manage', async () => {
    const claims = { roles: ['Admin'] }
    expect((await identity({ ...claims, scope: 'signalbox:read' }, {})).roles).toBeUndefined()
    expect((await identity({ ...claims, scope: 'signalbox:manage' }, {})).roles).toEqual(['Admin'])
  })
})

test('S11, S12 - without the option scopes have no effect, and client_id is before sub', async () => {
  const claims = { ClientID: undefined, client_id: 'chat', sub: 'alice', scope: 'signalbox:read', roles: 'Admin' }
  expect(await identity(claims)).toEqual({ clientId: 'chat', roles: ['Admin'], expiresAt: expect.any(Number) })
})
