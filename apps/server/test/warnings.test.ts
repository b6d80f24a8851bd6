import { expect, test } from 'vitest'
import { testFile } from '@signalbox/testkit/test-folder'

import type { PartialConfig } from '../src/config/load.ts'
import { certificate } from './support/tls.ts'
import { issuer, policyText } from './support/tokens.ts'
import { serveLogged } from './support/server.ts'

/** The warnings of a start. */
async function warnings(partial: PartialConfig): Promise<string[]> {
  const { server, lines } = await serveLogged(partial, 'warn')
  const messages = lines.map(({ msg }) => String(msg))
  await server.close()
  return messages
}

const EVERYWHERE = { host: '0.0.0.0' }

/** Tokens that only one issuer makes, for this server. */
const NARROW = { issuer: 'https://id.example', audience: ['signalbox'] }

test('S7, S8 - a listener that others can reach is warned of without authentication, and without TLS', async () => {
  const shared = { authentication: { ...NARROW, enable: true, keyFile: testFile(issuer().pem) } }
  const both = { ...shared, api: { authentication: { enable: true } } }
  const security = { certFile: certificate('server.crt'), keyFile: certificate('server.key') }
  expect(await warnings(both)).toEqual([])
  expect(await warnings({ http: { host: 'localhost' }, api: { host: '::1' } })).toEqual([])
  expect(await warnings({ http: EVERYWHERE, ...both })).toEqual([
    expect.stringMatching(/^http:.* has no TLS: .*SECURITY_CERT_FILE.*HTTP_HOST/),
  ])
  expect(await warnings({ http: EVERYWHERE, ...both, security })).toEqual([])
  expect(await warnings({ http: EVERYWHERE, security })).toEqual([
    expect.stringMatching(/^https:.*authentication is off.*AUTHENTICATION_ENABLE=true.*HTTP_HOST to 127.0.0.1\.$/),
  ])
  const api = { ...EVERYWHERE, authentication: { enable: true } }
  expect(await warnings({ ...shared, api, security })).toEqual([
    expect.stringMatching(/ has no TLS: .*API_SECURITY_CERT_FILE.*API_HOST/),
  ])
  expect(await warnings({ ...shared, api: { ...api, security }, security })).toEqual([])
  expect(await warnings({ http: EVERYWHERE, api: EVERYWHERE })).toEqual([
    expect.stringMatching(/authentication is off.*HTTP_HOST/),
    expect.stringMatching(/authentication is off.*API_HOST/),
  ])
  expect(await warnings({ ...shared, api: EVERYWHERE, security })).toEqual([
    expect.stringMatching(/authentication is off.*API_AUTHENTICATION_ENABLE=true.*API_HOST.* no TLS/),
  ])
})

test.each([
  [{}, /AUTHENTICATION_ISSUER and AUTHENTICATION_AUDIENCE are not set/],
  [{ issuer: 'https://id.example' }, /AUTHENTICATION_AUDIENCE is not set/],
  [{ audience: ['signalbox'] }, /AUTHENTICATION_ISSUER is not set/],
])('S1 - tokens that may be by or for anybody are warned of: %j', async (claims, text) => {
  const keyFile = testFile(issuer().pem)
  const found = await warnings({ authentication: { ...claims, enable: true, keyFile } })
  expect(found).toEqual([expect.stringMatching(text)])
  const onlyOperators = await warnings({
    authentication: { ...claims, keyFile },
    api: { authentication: { enable: true } },
  })
  expect(onlyOperators).toEqual([expect.stringMatching(text)])
})

test('S7 - a policy does not take the place of authentication', async () => {
  const authorization = { enable: true, policyFile: testFile(policyText({})) }
  expect(await warnings({ http: EVERYWHERE, authorization })).toEqual([expect.stringMatching(/authentication is off/)])
})

test('S1, S4 - unused keys and policies are reported', async () => {
  expect(await warnings({ authentication: { keyFile: testFile(issuer().pem) } })).toEqual([
    expect.stringMatching(/^keys for tokens are set/),
  ])
  expect(await warnings({ authorization: { policyFile: testFile(policyText()) } })).toEqual([
    expect.stringMatching(/^a policy is set, but authorization is off/),
  ])
})

test.each([
  ['http://id.example.invalid/jwks', true],
  ['http://localhost.example.invalid/', true],
  ['http://127.0.0.1:9/', false],
  ['http://localhost:9/', false],
  ['https://id.example.invalid/', false],
])('S1 - the start warns if keys are fetched from another machine without TLS: %s', async (jwksUrl, told) => {
  const found = await warnings({ authentication: { enable: true, jwksUrl } })
  expect(found.some((text) => text.startsWith('keys are fetched without TLS'))).toBe(told)
})

test.each([
  ['http://broker.example', true],
  ['http://127.0.0.1:9090', false],
  ['https://broker.example', false],
])('S10 - OAuth with a public URL without TLS is reported: %s', async (publicUrl, reported) => {
  const keys = { enable: true, keyFile: testFile(issuer().pem), issuer: 'https://id.example' }
  const oauth = { ...keys, audience: [`${publicUrl}/mcp`], oauth: { enable: true } }
  const found = await warnings({ publicUrl, authentication: oauth })
  expect(found.some((text) => text.startsWith('PUBLIC_URL is http'))).toBe(reported)
})
