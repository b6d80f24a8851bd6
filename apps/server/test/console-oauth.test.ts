import { resolveBySystem } from '@signalbox/http-kit/internal'
import { testServer } from '@signalbox/testkit/test-server'
import { expect, test } from 'vitest'

import type { PartialConfig } from '../src/config/load.ts'
import { createConfig } from '../src/config/load.ts'
import { readProviderMetadata } from '../src/security/console-oauth.ts'

const ISSUER = 'https://id.example.com'

function config(oauth: object, more: PartialConfig = {}): PartialConfig {
  return {
    api: { authentication: { enable: true } },
    authentication: { jwksUrl: `${ISSUER}/jwks`, issuer: ISSUER },
    console: { oauth },
    ...more,
  }
}

test('MGMT-19 - settings of CONSOLE_OAUTH that do not go together are refused, each with its remedy', () => {
  expect(createConfig(config({ clientId: 'console' })).console.oauth.scopes).toEqual(['openid'])
  const refused: readonly (readonly [PartialConfig, string])[] = [
    [config({ issuer: ISSUER }), 'console.oauth.clientId: console.oauth.issuer is set and there is no client id'],
    [config({ resource: 'urn:a' }), 'console.oauth.clientId: console.oauth.resource is set and there is no client id'],
    [config({ clientId: 'c' }, { api: {} }), 'the management listener requires no token'],
    [config({}, { console: { enable: false, oauth: { clientId: 'c' } } }), 'the console is off'],
    [
      config({ clientId: 'c' }, { authentication: { jwksUrl: `${ISSUER}/jwks` } }),
      'console.oauth.issuer: there is a client id and no issuer',
    ],
    [config({ clientId: 'c', issuer: 'http://id.example.com' }), 'allowed: an https URL, or http on loopback'],
    [config({ clientId: 'c', issuer: 'https://user:password@id.example.com' }), 'allowed: an https URL'],
    [
      config(
        { clientId: 'c', resource: 'urn:b' },
        {
          authentication: { jwksUrl: `${ISSUER}/jwks`, issuer: ISSUER, audience: ['urn:a'] },
        },
      ),
      'authentication.audience does not contain it, so the tokens would be refused; allowed: one of urn:a',
    ],
  ]
  for (const [given, problem] of refused) expect(() => createConfig(given)).toThrow(problem)
})

/** A provider that answers with these documents, by path. Returns its origin. */
async function provider(documents: (origin: string) => Readonly<Record<string, object>>): Promise<string> {
  const server = await testServer((request, response) => {
    const document = documents(origin)[request.url ?? '']
    response.writeHead(document === undefined ? 404 : 200).end(JSON.stringify(document))
  })
  const origin = server.url
  return origin
}

function metadata(issuer: string, more: object = {}): object {
  return { issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`, ...more }
}

test('CONSOLE_OAUTH - the endpoints are found by OpenID Connect Discovery and by RFC 8414', async () => {
  const origin = await provider((at) => ({
    '/realms/main/.well-known/openid-configuration': metadata(`${at}/realms/main`),
    '/.well-known/oauth-authorization-server/plain': metadata(`${at}/plain`),
    '/slash/.well-known/openid-configuration': metadata(`${at}/slash/`),
  }))
  for (const issuer of [`${origin}/realms/main`, `${origin}/plain`]) {
    expect(await readProviderMetadata(issuer, resolveBySystem)).toEqual({
      authorizationEndpoint: `${issuer}/authorize`,
      tokenEndpoint: `${issuer}/token`,
    })
  }
  expect(await readProviderMetadata(`${origin}/slash/`, resolveBySystem)).toMatchObject({
    tokenEndpoint: `${origin}/slash//token`,
  })
  await expect(readProviderMetadata(`${origin}/slash`, resolveBySystem)).rejects.toThrow(
    `the metadata is of the issuer "${origin}/slash/"; set CONSOLE_OAUTH_ISSUER to it`,
  )
})

test('CONSOLE_OAUTH - metadata with which no operator could sign in safely is refused', async () => {
  const refused: readonly (readonly [object, string])[] = [
    [{ token_endpoint: undefined }, 'the metadata has no issuer, authorization_endpoint or token_endpoint'],
    [{ token_endpoint: 'http://id.example.com/token' }, 'it must be an https URL, or http on loopback'],
    [{ authorization_endpoint: 'javascript:alert(1)' }, 'it must be an https URL, or http on loopback'],
    [{ code_challenge_methods_supported: ['plain'] }, 'the provider does not support PKCE with S256'],
  ]
  for (const [more, problem] of refused) {
    const origin = await provider((at) => ({ '/.well-known/openid-configuration': metadata(at, more) }))
    await expect(readProviderMetadata(origin, resolveBySystem)).rejects.toThrow(problem)
  }
})
