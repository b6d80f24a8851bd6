import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'

import type { PartialConfig } from '../src/config/load.ts'
import { createConfig } from '../src/config/load.ts'
import { startServer } from '../src/server.ts'
import { temporaryFolder } from './support/temp.ts'
import { file, issuer, policyText } from './support/tokens.ts'

/** The warnings of a start. */
async function warnings({ http, api, ...partial }: PartialConfig): Promise<string[]> {
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  const server = await startServer(
    createConfig({
      ...partial,
      http: { port: 0, ...http },
      api: { port: 0, ...api },
      store: { path: temporaryFolder() },
    }),
    { log },
  )
  onTestFinished(() => server.close())
  return lines.map((line) => (JSON.parse(line) as { msg: string }).msg)
}

const EVERYWHERE = { host: '0.0.0.0' }

test('S7 - with authentication on, a listener that others can reach is warned of no more', async () => {
  const shared = { authentication: { enable: true, keyFile: file(issuer().pem) } }
  expect(await warnings({ http: EVERYWHERE, ...shared })).toEqual([])
  const management = await warnings({ api: EVERYWHERE, ...shared })
  expect(management).toEqual([expect.stringMatching(/authentication is off.*API_AUTHENTICATION_ENABLE=true.*API_HOST/)])
  const both = { ...shared, api: { ...EVERYWHERE, authentication: { enable: true } } }
  expect(await warnings({ http: EVERYWHERE, ...both })).toEqual([])
})

test('S7 - a policy does not take the place of authentication', async () => {
  const authorization = { enable: true, policyFile: file(policyText({})) }
  expect(await warnings({ http: EVERYWHERE, authorization })).toEqual([expect.stringMatching(/authentication is off/)])
})

test('S1, S4 - keys and policies that nothing looks at are told of', async () => {
  expect(await warnings({ authentication: { keyFile: file(issuer().pem) } })).toEqual([
    expect.stringMatching(/^keys for tokens are set/),
  ])
  expect(await warnings({ authorization: { policyFile: file(policyText()) } })).toEqual([
    expect.stringMatching(/^a policy is set, and authorization is off/),
  ])
})

test.each([
  ['http://id.example.invalid/jwks', true],
  ['http://localhost.example.invalid/', true],
  ['http://127.0.0.1:9/', false],
  ['http://localhost:9/', false],
  ['https://id.example.invalid/', false],
])('S1 - whether keys are fetched without TLS from elsewhere is told: %s', async (jwksUrl, told) => {
  const found = await warnings({ authentication: { enable: true, jwksUrl } })
  expect(found.some((text) => text.startsWith('keys are fetched without TLS'))).toBe(told)
})
