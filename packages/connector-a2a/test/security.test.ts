import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'

import { ANONYMOUS } from '@signalbox/broker-core'
import type { Authenticator } from '@signalbox/http-kit'
import { AuthenticationError } from '@signalbox/http-kit'
import type { ListeningAddress } from '@signalbox/registry'
import { AgentAddressPolicy } from '@signalbox/registry'
import { expect, onTestFinished, test } from 'vitest'

import { startAgent } from './agents.ts'
import { CERTIFICATE, PRIVATE_KEY } from './certificate.ts'
import { messageSend, openGateway } from './gateway-host.ts'

function identify(authorization: string | undefined): { clientId: string } {
  if (authorization === 'Bearer good') return { clientId: 'alice' }
  throw new AuthenticationError('no such token')
}

/** Knows one token, and answers at once or later. */
function tokens(later: boolean): Authenticator {
  return {
    authenticate: ({ headers: { authorization } }) =>
      later ? Promise.resolve(authorization).then(identify) : identify(authorization),
  }
}

function refused(id: unknown): object {
  return { jsonrpc: '2.0', id, error: { code: -32010, message: 'Authentication failed' } }
}

test.each([false, true])(
  'S5, RPC-9 - security: without a valid token a call is 200 with -32010 and its own id, and reaches nobody (later: %s)',
  async (later) => {
    const host = await openGateway({ authenticator: tokens(later) })
    const agent = await startAgent()
    await host.register('agent-1', agent.url)
    const send = async (body: string, headers: Record<string, string> = {}, agentId = 'agent-1'): Promise<unknown> => {
      const answer = await host.post(agentId, body, headers)
      expect(answer.status).toBe(200)
      return JSON.parse(answer.text)
    }
    expect(await send(messageSend(7))).toEqual(refused(7))
    expect(await send(messageSend('x'), { authorization: 'Bearer bad' })).toEqual(refused('x'))
    expect(await send('no JSON')).toEqual(refused(null))
    expect(await send(messageSend(7, { text: 'x'.repeat(65_536) }))).toEqual(refused(null))
    expect(await send(messageSend(7), { 'content-encoding': 'gzip' })).toEqual(refused(null))
    // Not even whether there is such an agent, or could be, is told.
    expect(await send(messageSend(7), {}, 'nobody')).toEqual(refused(7))
    expect(await send(messageSend(7), {}, 'Not An Id')).toEqual(refused(7))
    expect(agent.asked).toEqual([])
    expect(await send(messageSend(7), { authorization: 'Bearer good' })).toMatchObject({ result: {} })
    expect(agent.asked[0]?.headers['x-broker-caller-id']).toBe('alice')
    expect(agent.asked[0]?.headers.authorization).toBeUndefined()
    expect(host.finished.filter(({ errorCode }) => errorCode === '-32010')).toHaveLength(7)
  },
)

test('A1 - security: GET on a stream without a valid token is 200 with -32010 as JSON, id null', async () => {
  const host = await openGateway({ authenticator: tokens(false) })
  const response = await fetch(`${host.base}/a2a/agent-1/stream?message=hi`)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
  expect(await response.json()).toEqual(refused(null))
})

test('S5, RPC-8 - security: an authenticator that fails is -32603, without the reason', async () => {
  const host = await openGateway({
    authenticator: {
      authenticate() {
        throw new Error('the key store at 10.0.0.1 is away')
      },
    },
  })
  const answer = await host.post('agent-1', messageSend(3))
  expect(JSON.parse(answer.text)).toEqual({ jsonrpc: '2.0', id: 3, error: { code: -32603, message: 'internal error' } })
  expect(host.failures).toHaveLength(1)
})

test('S6, J3, ORIGIN-1, ORIGIN-5 - security: an origin that is not trusted is 403 before anything is read', async () => {
  let asked = 0
  const host = await openGateway({
    bindHost: '192.0.2.7',
    authenticator: { authenticate: () => (asked++, ANONYMOUS) },
  })
  const agent = await startAgent()
  await host.register('agent-1', agent.url)
  for (const origin of [
    'https://evil.example',
    'null',
    'http://localhost.evil.example',
    'http://[::1]',
    'http://0.0.0.0',
  ]) {
    const answer = await host.post('agent-1', messageSend(7), { origin })
    expect([origin, answer.status, JSON.parse(answer.text)]).toEqual([
      origin,
      403,
      {
        jsonrpc: '2.0',
        id: null,
        error: { code: -32600, message: 'origin not allowed; add it to CONNECTORSA2_A_TRUSTED_ORIGINS' },
      },
    ])
  }
  expect(asked).toBe(0)
  for (const origin of ['http://localhost:3000', 'https://127.0.0.1', 'http://192.0.2.7:9090', '']) {
    expect((await host.post('agent-1', messageSend(7), { origin })).text).toContain('"result"')
  }
  expect(agent.asked).toHaveLength(4)
  const list = await openGateway({ trustedOrigins: ['https://app.example'] })
  expect((await list.post('agent-1', messageSend(), { origin: 'http://localhost' })).status).toBe(403)
  expect((await list.post('agent-1', messageSend(), { origin: 'https://app.example' })).status).toBe(200)
})

test('R8 - security: an agent that is where the server itself listens is never called', async () => {
  const agent = await startAgent()
  let own: readonly ListeningAddress[] = []
  const host = await openGateway({ addressPolicy: new AgentAddressPolicy({ ownAddresses: () => own }) })
  await host.register('literal', agent.url)
  await host.register('named', agent.url.replace('127.0.0.1', 'localhost'))
  expect(await host.call('literal')).toHaveProperty('result')
  own = [{ host: '0.0.0.0', port: agent.port }]
  const error = { code: -32003, message: 'agent unreachable: its address may not be called' }
  expect(await host.call('literal')).toEqual({ jsonrpc: '2.0', id: 1, error })
  expect(await host.call('named')).toEqual({ jsonrpc: '2.0', id: 1, error })
  expect(agent.asked).toHaveLength(1)
})

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
