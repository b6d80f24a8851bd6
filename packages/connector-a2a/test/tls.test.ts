import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'

import { expect, onTestFinished, test } from 'vitest'

import { CERTIFICATE, PRIVATE_KEY } from './certificate.ts'
import { openGateway } from './gateway-host.ts'

async function startTlsAgent(): Promise<{ readonly port: number; readonly handshakes: () => number }> {
  let handshakes = 0
  const server = createServer({ cert: CERTIFICATE, key: PRIVATE_KEY }, (request, response) => {
    request.resume().on('end', () => response.end('"over TLS"'))
  })
  server.on('secureConnection', () => handshakes++)
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, handshakes: () => handshakes }
}

const UNTRUSTED = {
  error: { code: -32003, message: 'agent unreachable: its certificate is not trusted, or TLS failed' },
}

test('A3 - TLS: a certificate of an unknown authority is refused, before the agent gets any data', async () => {
  const { port } = await startTlsAgent()
  const host = await openGateway()
  await host.register('by-address', `https://127.0.0.1:${port}/`)
  await host.register('by-name', `https://localhost:${port}/`)
  await host.register('no-tls', `https://127.0.0.1:${host.port}/`)
  for (const id of ['by-address', 'by-name', 'no-tls']) expect(await host.call(id)).toMatchObject(UNTRUSTED)
})

test('A3, LIMIT-5 - TLS: it is trusted with its authority, or with AgentTLSSkipVerify; connections are kept', async () => {
  for (const options of [{ agentCa: CERTIFICATE }, { agentCa: [CERTIFICATE] }, { agentTlsSkipVerify: true }]) {
    const { port, handshakes } = await startTlsAgent()
    const host = await openGateway(options)
    await host.register('by-address', `https://127.0.0.1:${port}/`)
    for (let i = 0; i < 5; i++) expect(await host.call('by-address')).toMatchObject({ result: 'over TLS' })
    expect(handshakes()).toBe(1)
  }
})
