import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { ServerError } from '../src/errors.ts'
import { callAgent, register } from './support/agent.ts'
import { serve, serveLogged } from './support/server.ts'

function certificate(name: string): string {
  return join(import.meta.dirname, 'certificates', name)
}

/** An agent over TLS that answers every call; resolves with its URL. */
async function startTlsAgent(): Promise<string> {
  const key = readFileSync(certificate('server.key'))
  const server = createServer({ key, cert: readFileSync(certificate('server.crt')) }, (_request, response) => {
    response.end('{"jsonrpc":"2.0","id":1,"result":"over TLS"}')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** What a call to an agent over TLS comes to, with these settings. */
async function calledWith(a2a: object): Promise<unknown> {
  const { http } = await serve({ connectors: { a2a } })
  await register(http.url, { agent_id: 'secret', name: 'Secret', url: await startTlsAgent() })
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
