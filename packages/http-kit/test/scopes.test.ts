import { POLICY_ACTIONS } from '@signalbox/broker-core'
import type { JWTPayload } from 'jose'
import { describe, expect, onTestFinished, test } from 'vitest'

import type { Identity, OAuthTokenOptions } from '../src/index.ts'
import { bearerAuthenticator, scopeOf, SCOPES } from '../src/index.ts'
import { ecKey, file, pem, request, token } from './support/tokens.ts'

const KEY = ecKey('one')

async function identity(claims: JWTPayload, oauth?: OAuthTokenOptions): Promise<Identity> {
  const authenticator = bearerAuthenticator({
    keys: { keyFile: file(pem(KEY)) },
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

test('S11 - the scopes and their actions are those of the table', () => {
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
