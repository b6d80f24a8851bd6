import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { ServerError } from '../src/errors.ts'
import { callAgent, register } from './support/agent.ts'
import { serve, serveLogged } from './support/server.ts'
import { certificate, startTlsAgent } from './support/tls.ts'

/** What a call to an agent over TLS comes to, with these settings. */
async function calledWith(a2a: object): Promise<unknown> {
  const { http } = await serve({ connectors: { a2a } })
  await register(http.url, { agent_id: 'secret', name: 'Secret', url: `https://127.0.0.1:${await startTlsAgent()}/` })
  return callAgent(http.url, 'secret', 'message/send')
}

test('agents over TLS - a certificate of an unknown authority is refused, and the caller does not see it', async () => {
  expect(await calledWith({})).toMatchObject({
    error: { code: -32003, message: 'agent unreachable: its certificate is not trusted, or TLS failed' },
  })
})

test('agents over TLS - CONNECTORSA2_A_AGENT_CA_FILE names an authority of your own', async () => {
  expect(await calledWith({ agentCaFile: certificate('authority.crt') })).toMatchObject({ result: 'over TLS' })
  expect(await calledWith({ agentCaFile: certificate('other-authority.crt') })).toMatchObject({
    error: { code: -32003 },
  })
})

test('agents over TLS - CONNECTORSA2_A_AGENT_TLS_SKIP_VERIFY takes any certificate, and warns at the start', async () => {
  expect(await calledWith({ agentTlsSkipVerify: true })).toMatchObject({ result: 'over TLS' })
  const { lines } = await serveLogged({ connectors: { a2a: { agentTlsSkipVerify: true } } }, 'warn')
  expect(JSON.stringify(lines)).toContain('CONNECTORSA2_A_AGENT_TLS_SKIP_VERIFY is true')
})

test.each([
  ['is not there', undefined],
  ['holds no certificate', 'hello'],
])('agents over TLS - an authority file that %s stops the start', async (_what, text) => {
  const file = join(testFolder(), 'authority.pem')
  if (text !== undefined) writeFileSync(file, text)
  const started = serve({ connectors: { a2a: { agentCaFile: file } } })
  await expect(started).rejects.toThrow(`connectors.a2a.agentCaFile: ${file}`)
  await expect(started).rejects.toBeInstanceOf(ServerError)
})
