import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { connect as connectTls } from 'node:tls'

import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { replaceFile, testFile, testFolder } from '@signalbox/testkit/test-folder'

import { createConfig } from '../src/config/load.ts'
import type { RunningServer } from '../src/server.ts'
import { startServer } from '../src/server.ts'
import { openTls } from '../src/security/tls.ts'
import { serve, serveLogged } from './support/server.ts'
import { certificate, fetchTls, pem, tlsClient } from './support/tls.ts'
import { issuer } from './support/tokens.ts'

const TLS = { certFile: certificate('server.crt'), keyFile: certificate('server.key') }
const MTLS = { ...TLS, caFile: certificate('authority.crt') }
const CLIENT = { cert: pem('client.crt'), key: pem('client.key') }

/** The error of a client that the server cuts off, which depends on how much it has sent by then. */
const CUT_OFF = /alert|ECONNRESET|EPIPE|hang up|disconnected/

const PING = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
}

test('S8 - with a certificate the shared listener uses TLS, and the management listener does not', async () => {
  const { http, api } = await serve({ security: TLS })
  expect(http.url).toMatch(/^https:\/\/127\.0\.0\.1:[0-9]+$/)
  expect(api.url).toMatch(/^http:/)
  const answer = await fetchTls(`${http.url}/mcp`, tlsClient(), PING)
  expect(answer).toMatchObject({ status: 200, text: '{"jsonrpc":"2.0","id":1,"result":{}}' })
  expect((await fetch(`${api.url}/ready`)).status).toBe(200)
  expect((await fetch(http.url.replace('https', 'http'))).status).toBe(400)
  await expect(fetchTls(http.url, tlsClient({ ca: pem('other-authority.crt') }))).rejects.toThrow(/certificate/)
})

test('S8 - the management listener speaks TLS with its own certificates, and reads them again', async () => {
  const security = { certFile: testFile(pem('server.crt')), keyFile: testFile(pem('server.key')) }
  const { http, api } = await serve({ api: { security } })
  expect(http.url).toMatch(/^http:/)
  expect(api.url).toMatch(/^https:/)
  const answer = await fetchTls(`${api.url}/metrics`, tlsClient())
  expect(answer).toMatchObject({ status: 200, text: expect.stringContaining('broker_queue_messages') })
  expect((await fetch(`${api.url.replace('https', 'http')}/ping`)).status).toBe(400)
  expect(await subject(api.url)).toBe('first.example')
  replaceFile(security.keyFile, pem('next-server.key'))
  replaceFile(security.certFile, pem('next-server.crt'))
  await expect.poll(() => subject(api.url), { timeout: 20_000 }).toBe('second.example')
})

test('S8 - with authorities of clients the management listener asks for certificates', async () => {
  const { api } = await serve({ api: { security: MTLS } })
  expect(await fetchTls(`${api.url}/ready`, tlsClient(CLIENT))).toMatchObject({ status: 200 })
  await expect(fetchTls(`${api.url}/ready`, tlsClient())).rejects.toThrow(CUT_OFF)
})

test('S8 - versions before TLS 1.2 are refused', async () => {
  const { http } = await serve({ security: TLS })
  const old = tlsClient({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' })
  await expect(fetchTls(`${http.url}/ping`, old)).rejects.toThrow(/version|alert|protocol/i)
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const client = tlsClient({ minVersion: version, maxVersion: version })
    expect((await fetchTls(`${http.url}/ping`, client)).status).toBe(200)
  }
})

test('S8 - with mutual TLS only clients with a certificate of the authority are admitted; the log shows the CN, which is no ClientID', async () => {
  const { server, lines } = await serveLogged({ security: MTLS })
  const { url } = server.http
  const senders: string[] = []
  server.broker.observe({ accepted: (_type, _channel, { clientId }) => void senders.push(clientId) })
  const send = { name: 'queue_send', arguments: { channel: 'q', body: 'x' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: send })
  expect(await fetchTls(`${url}/mcp`, tlsClient(CLIENT), { ...PING, body })).toMatchObject({ status: 200 })
  expect(senders).toEqual(['anonymous'])
  const refused = { cert: pem('stranger.crt'), key: pem('stranger.key') }
  await expect(fetchTls(`${url}/ping`, tlsClient())).rejects.toThrow(CUT_OFF)
  await expect(fetchTls(`${url}/ping`, tlsClient(refused))).rejects.toThrow(CUT_OFF)
  await server.close()
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'client certificate accepted', peer: 'crm-gateway' }))
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'request', path: '/mcp', peer: 'crm-gateway' }))
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'TLS handshake failed', address: '127.0.0.1' }))
  expect(lines.filter(({ path }) => path === '/ping')).toEqual([])
})

test('S8 - a client certificate does not replace a token', async () => {
  const { http } = await serve({ security: MTLS, authentication: { enable: true, keyFile: testFile(issuer().pem) } })
  const answer = await fetchTls(`${http.url}/mcp`, tlsClient(CLIENT), PING)
  expect(answer.text).toContain('"code":-32010')
})

test('S8 - certificates are read again under load: no request is dropped, new connections see the new one', async () => {
  const security = { certFile: testFile(pem('server.crt')), keyFile: testFile(pem('server.key')) }
  const { server, lines } = await serveLogged({ security })
  const { url } = server.http
  const reported = (msg: string) => lines.filter((line) => line['msg'] === msg).length
  const load = { running: true, calls: 0 }
  const failures: unknown[] = []
  const clients = Promise.all(
    Array.from({ length: 8 }, async (_, i) => {
      // Half of them open a connection for each request.
      const agent = tlsClient({ keepAlive: i % 2 === 0 })
      while (load.running) {
        await fetchTls(`${url}/mcp`, agent, PING).then(
          ({ status }) => (status === 200 ? load.calls++ : failures.push(status)),
          (error: unknown) => failures.push(error),
        )
        await pause(5)
      }
    }),
  )
  // The key of another certificate, as in the moment between two writes.
  replaceFile(security.keyFile, pem('next-server.key'))
  await expect
    .poll(() => reported('certificates not reloaded: the previous certificates remain in force'), { timeout: 20_000 })
    .toBe(1)
  expect(await subject(url)).toBe('first.example')
  replaceFile(security.certFile, pem('next-server.crt'))
  await expect.poll(() => reported('certificates reloaded'), { timeout: 20_000 }).toBe(1)
  expect(await subject(url)).toBe('second.example')
  const before = load.calls
  await expect.poll(() => load.calls, { timeout: 20_000 }).toBeGreaterThan(before + 50)
  load.running = false
  await clients
  expect(failures).toEqual([])
})

/** The name in the certificate that the server shows now. */
async function subject(url: string): Promise<string> {
  const { port } = new URL(url)
  const socket: TLSSocket = connectTls({ port: Number(port), host: '127.0.0.1', ca: pem('authority.crt') })
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.once('error', reject)
  })
  const name = String(socket.getPeerCertificate().subject.CN)
  socket.destroy()
  return name
}

test.each([
  [{ certFile: TLS.certFile }, /^security\.keyFile: it is missing; allowed: a certificate and its key, or neither$/],
  [{ keyFile: TLS.keyFile }, /^security\.certFile: it is missing; allowed: a certificate and its key, or neither$/],
  [{ caFile: MTLS.caFile }, /^security\.caFile: clients can be asked for certificates only over TLS/],
  [{ ...TLS, certFile: '/nowhere' }, /^security: cannot read "\/nowhere" \(ENOENT\)$/],
  [{ ...TLS, certFile: TLS.keyFile }, /^security\.certFile: it contains no certificate in PEM/],
  [{ ...MTLS, caFile: TLS.keyFile }, /^security\.caFile: it contains no certificate in PEM/],
  [
    { ...TLS, keyFile: certificate('client.key') },
    /^security\.keyFile: it does not contain the private key.*first\.example/s,
  ],
  [{ ...TLS, keyFile: TLS.certFile }, /^security\.keyFile: it does not contain the private key/],
])('S8 - the settings %j stop the start', async (security, problem) => {
  const start = async () => startServer(createConfig({ security, store: { path: testFolder() } }))
  await expect(start()).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    problems: [expect.stringMatching(problem)],
  })
})

async function startManaged(security: object): Promise<RunningServer> {
  return startServer(createConfig({ api: { port: 0, security }, store: { path: testFolder() } }))
}

test('S8 - the settings of the management listener are named in its own messages', async () => {
  await expect(startManaged({ certFile: TLS.certFile })).rejects.toMatchObject({
    problems: ['api.security.keyFile: it is missing; allowed: a certificate and its key, or neither'],
  })
  await expect(startManaged({ ...TLS, keyFile: TLS.certFile })).rejects.toMatchObject({
    problems: [expect.stringMatching(/^api\.security\.keyFile: it does not contain the private key/)],
  })
})

test('S8 - a client that does not finish its TLS handshake is disconnected', async () => {
  const tls = openTls({ ...TLS, caFile: '' }, { log: pino({ level: 'silent' }), notify: () => {}, handshakeMs: 500 })
  const server = tls?.createServer({}, (_request, response) => void response.end('ok'))
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    tls?.[Symbol.dispose]()
    server?.close()
  })
  const address = server?.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const silent = connect(port, '127.0.0.1')
  const halfWay = connect(port, '127.0.0.1', () => void halfWay.write(Buffer.from([22, 3, 1, 2, 0, 1])))
  await Promise.all(
    [silent, halfWay].map(
      (socket) =>
        new Promise<void>((resolve) =>
          socket
            .on('error', () => {})
            .once('close', () => resolve())
            .resume(),
        ),
    ),
  )
  expect((await fetchTls(`https://127.0.0.1:${port}/`, tlsClient())).text).toBe('ok')
})

test('S8 - hundreds of idle connections, some with half a request, block no other client, with and without TLS', async () => {
  for (const security of [{}, TLS]) {
    const { http } = await serve({ security })
    const { port } = new URL(http.url)
    const idle = Array.from({ length: 300 }, () => connect(Number(port), '127.0.0.1').on('error', () => {}))
    onTestFinished(() => {
      for (const socket of idle) socket.destroy()
    })
    await Promise.all(idle.map((socket) => new Promise<void>((resolve) => socket.once('connect', resolve))))
    for (const socket of idle.slice(0, 150)) socket.write('POST /mcp HTTP/1.1\r\nHost: x\r\n')
    await pause(50)
    const status = http.url.startsWith('https')
      ? (await fetchTls(`${http.url}/ping`, tlsClient())).status
      : (await fetch(`${http.url}/ping`)).status
    expect(status).toBe(200)
    for (const socket of idle) socket.destroy()
  }
})
