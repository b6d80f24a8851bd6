import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from 'node:tls'

import { commandLine, conclude, number } from '@signalbox/testkit/command-line'
import type { HttpAnswer } from '@signalbox/testkit/http-connection'
import { KeepAliveConnection, postBytes } from '@signalbox/testkit/http-connection'
import { serveHttp } from '@signalbox/testkit/loopback'
import { startSignalbox, WORKSPACE } from '@signalbox/testkit/signalbox-server'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import type { CryptoKey, JWK } from 'jose'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

const SIZES = {
  seconds: number('N', 'duration', 30),
  clients: number('N', 'concurrent clients', 64),
}

/** Rotates the keys of tokens under load. */
export async function keyRotation(args: string[]): Promise<void> {
  const { values } = commandLine(
    {
      usage: 'npm run soak -- key-rotation [options]',
      about: `Keys of tokens rotate while clients call the real server with tokens that they renew: a new key is published before it
signs, an old one withdrawn when its last token has expired. Exits with 1 if a request failed.`,
    },
    SIZES,
    args,
  )
  const { seconds, clients } = values
  for (const source of ['url', 'file'] as const) {
    const report = await rotateKeys({ seconds, clients, intervalMs: 1_000, source })
    printRotation(`keys from a ${source}, ${clients} clients`, report)
  }
}

/** Replaces certificates under load. */
export async function certificateRotation(args: string[]): Promise<void> {
  const { values } = commandLine(
    {
      usage: 'npm run soak -- certificate-rotation [options]',
      about: `Certificates are replaced while clients call the real server over TLS, half of them on a new connection for each request.
Exits with 1 if a request failed, or if the server did not load a certificate.`,
    },
    SIZES,
    args,
  )
  const { seconds, clients } = values
  printRotation(`certificates, ${clients} clients`, await rotateCertificates({ seconds, clients, intervalMs: 500 }))
}

interface RotationOptions {
  readonly seconds: number
  readonly clients: number
  /** The time between two rotations, in milliseconds. */
  readonly intervalMs: number
  /** The pause of a client between two calls, in milliseconds. @default 0 */
  readonly pauseMs?: number
}

interface RotationReport {
  readonly seconds: number
  readonly requests: number
  /** The failures, one entry each. */
  readonly failures: readonly string[]
  readonly rotations: number
  /** The number of rotations that the server was seen to apply. */
  readonly takenUp: number
  readonly exitCode: number | null
}

function isResult({ status, body }: HttpAnswer): boolean {
  return status === 200 && body.includes('"result":')
}

/** The clients' load during rotations, and its results. */
class RotationLoad {
  readonly failures: string[] = []
  requests = 0
  ended = false
  readonly #pauseMs: number

  constructor({ pauseMs = 0 }: RotationOptions) {
    this.#pauseMs = pauseMs
  }

  /** Calls repeatedly until the load has ended; anything except a result is a failure. */
  async client(call: () => Promise<HttpAnswer>): Promise<void> {
    while (!this.ended) {
      try {
        const { status, body } = await call()
        this.requests++
        if (!isResult({ status, body })) this.failures.push(`${status} ${body.toString('utf8', 0, 200)}`)
      } catch (error) {
        this.requests++
        this.failures.push(String(error))
      }
      if (this.#pauseMs > 0) await pause(this.#pauseMs)
    }
  }
}

/** Returns the reasons why a rotation failed; empty if it succeeded. */
export function rotationProblems({ requests, failures, rotations, takenUp, exitCode }: RotationReport): string[] {
  const problems: string[] = []
  if (requests === 0) problems.push('no request was sent')
  if (rotations === 0) problems.push('nothing rotated')
  if (takenUp < rotations) problems.push(`the server applied ${takenUp} of ${rotations} rotations`)
  if (failures.length > 0) problems.push(`${failures.length} requests failed: ${failures.slice(0, 3).join(' · ')}`)
  if (exitCode !== 0) problems.push(`the server ended with exit code ${exitCode}`)
  return problems
}

function printRotation(what: string, report: RotationReport): void {
  const { seconds, requests, failures, rotations, takenUp } = report
  const rate = `${requests} requests (${Math.round(requests / seconds)}/s), ${failures.length} failed`
  process.stdout.write(`${what}: ${seconds.toFixed(1)} s, ${rate}; ${rotations} rotations, ${takenUp} applied\n`)
  conclude(rotationProblems(report))
}

/** Replaces a file as editors and orchestrators do. */
function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}

/** A file of the test certificates. */
function testCertificate(name: string): string {
  return readFileSync(join(WORKSPACE, 'apps/server/test/certificates', name), 'utf8')
}

interface KeyRotationOptions extends RotationOptions {
  /** The source of the server's keys: a URL, or a file. */
  readonly source: 'url' | 'file'
}

/**
 * The age at which a client renews its token, and the validity of a token after its key's last use, in milliseconds.
 */
const RENEW_MS = 1_000
const LIFETIME_MS = 5_000

/** The server reads a file each second, so the issuer publishes a key this much before its first use. */
const FILE_LEAD_MS = 3_000

const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

interface Key {
  readonly kid: string
  readonly privateKey: CryptoKey
  readonly jwk: JWK
}

/**
 * An issuer that behaves like a provider: it publishes a key before it signs with it, and withdraws the key when its
 * last token has expired.
 */
class Issuer {
  readonly #publish: (keySet: string) => void
  readonly #published: Key[] = []
  #signing: Key | undefined
  #made = 0

  constructor(publish: (keySet: string) => void) {
    this.#publish = publish
  }

  /** Switches to a new key, after it has been public for this many milliseconds. */
  async rotate(leadMs: number): Promise<void> {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
    const kid = `key-${++this.#made}`
    const key = { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: 'ES256' } }
    this.#published.push(key)
    this.#tell()
    if (leadMs > 0) await pause(leadMs)
    const before = this.#signing
    this.#signing = key
    if (before === undefined) return
    const withdraw = setTimeout(() => {
      this.#published.splice(this.#published.indexOf(before), 1)
      this.#tell()
    }, LIFETIME_MS + RENEW_MS)
    withdraw.unref()
  }

  async token(client: string): Promise<{ readonly kid: string; readonly token: string }> {
    if (this.#signing === undefined) throw new Error('no key exists yet')
    const { kid, privateKey } = this.#signing
    const token = await new SignJWT({ ClientID: client })
      .setProtectedHeader({ alg: 'ES256', kid })
      .setExpirationTime(Math.ceil((Date.now() + LIFETIME_MS) / 1000))
      .sign(privateKey)
    return { kid, token }
  }

  #tell(): void {
    this.#publish(JSON.stringify({ keys: this.#published.map(({ jwk }) => jwk) }))
  }
}

/** A client that renews its token, on one connection. `accepted` gets the keys whose tokens the server accepted. */
async function openClient(issuer: Issuer, http: string, name: string, accepted: Set<string>) {
  const url = `${http}/mcp`
  const connection = await KeepAliveConnection.open(url)
  let request: Buffer = Buffer.alloc(0)
  let kid = ''
  let renewAt = 0
  const call = async () => {
    if (performance.now() >= renewAt) {
      const renewed = await issuer.token(name)
      request = postBytes(url, PING, { Authorization: `Bearer ${renewed.token}` })
      kid = renewed.kid
      // The clients renew at different moments.
      renewAt = performance.now() + RENEW_MS * (0.5 + Math.random() / 2)
    }
    const answer = await connection.request(request)
    if (isResult(answer)) accepted.add(kid)
    return answer
  }
  return { call, close: () => connection.close() }
}

/** Rotates keys while clients call the real server with tokens that they renew. */
export async function rotateKeys(options: KeyRotationOptions): Promise<RotationReport> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await TemporaryFolder.create('key-rotation'))
  const file = folder.join('jwks.json')
  let keySet = '{"keys":[]}'
  const provider = stack.use(
    await serveHttp((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(keySet)
    }),
  )
  const hasUrl = options.source === 'url'
  const issuer = new Issuer((text) => (hasUrl ? (keySet = text) : replaceFile(file, text)))
  await issuer.rotate(0)
  const server = stack.use(
    await startSignalbox({
      storePath: folder.join('store'),
      env: {
        LOG_LEVEL: 'error',
        AUTHENTICATION_ENABLE: 'true',
        ...(hasUrl ? { AUTHENTICATION_JWKS_URL: provider.url } : { AUTHENTICATION_JWKS_FILE: file }),
      },
    }),
  )
  const load = new RotationLoad(options)
  const accepted = new Set<string>()
  const opened = Array.from({ length: options.clients }, (_, i) =>
    openClient(issuer, server.http, `client-${i}`, accepted),
  )
  const clients = await Promise.all(opened)
  const begin = performance.now()
  const calls = Promise.all(clients.map(({ call }) => load.client(call)))
  const leadMs = hasUrl ? 0 : FILE_LEAD_MS
  const rotating: Promise<void>[] = []
  while (performance.now() - begin + 2 * RENEW_MS + leadMs < options.seconds * 1000) {
    rotating.push(issuer.rotate(leadMs))
    await pause(options.intervalMs)
  }
  await Promise.all(rotating)
  // Waits until every client has renewed its token, and a little longer.
  await pause(2 * RENEW_MS)
  load.ended = true
  await calls
  const seconds = (performance.now() - begin) / 1000
  for (const { close } of clients) close()
  return {
    seconds,
    requests: load.requests,
    failures: load.failures,
    rotations: rotating.length,
    // The first key existed before the load.
    takenUp: accepted.size - 1,
    exitCode: await server.process.stop(),
  }
}

/** The time within which the server must load a new certificate, in milliseconds: it reads the files each second. */
const LOADED_MS = 10_000

const CERTIFICATES = ['server', 'next-server'].map((name) => ({
  cert: testCertificate(`${name}.crt`),
  key: testCertificate(`${name}.key`),
}))

/** Returns the certificate that the server shows to a new connection. */
function shown(url: string, ca: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), ca }, () => {
      resolve(socket.getPeerX509Certificate()?.toString() ?? '')
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

/**
 * Replaces certificates while clients call the real server over TLS: half of them on one connection each, half on a new
 * one for each request.
 */
export async function rotateCertificates(options: RotationOptions): Promise<RotationReport> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await TemporaryFolder.create('certificate-rotation'))
  const files = { cert: folder.join('tls.crt'), key: folder.join('tls.key') }
  const use = async (index: number): Promise<void> => {
    const { cert = '', key = '' } = CERTIFICATES[index % CERTIFICATES.length] ?? {}
    replaceFile(files.key, key)
    // Two separate writes, so for a moment key and certificate do not match.
    await pause(Math.random() * 50)
    replaceFile(files.cert, cert)
  }
  await use(0)
  const env = { SECURITY_CERT_FILE: files.cert, SECURITY_KEY_FILE: files.key, LOG_LEVEL: 'error' }
  const server = stack.use(await startSignalbox({ storePath: folder.join('store'), env }))
  const url = `${server.http}/mcp`
  const request = postBytes(url, '{"jsonrpc":"2.0","id":1,"method":"ping"}')
  const ca = testCertificate('authority.crt')
  const load = new RotationLoad(options)
  const kept = await Promise.all(
    Array.from({ length: Math.ceil(options.clients / 2) }, () => KeepAliveConnection.open(url, { ca })),
  )
  const callAnew = async () => {
    const connection = await KeepAliveConnection.open(url, { ca })
    try {
      return await connection.request(request)
    } finally {
      connection.close()
    }
  }
  const begin = performance.now()
  const calls = Promise.all([
    ...kept.map((connection) => load.client(() => connection.request(request))),
    ...Array.from({ length: Math.floor(options.clients / 2) }, () => load.client(callAnew)),
  ])
  let rotations = 0
  let takenUp = 0
  while (performance.now() - begin < options.seconds * 1000) {
    await use(++rotations)
    const next = CERTIFICATES[rotations % CERTIFICATES.length]?.cert.trim()
    const until = performance.now() + LOADED_MS
    let found = false
    while (!found && performance.now() < until) {
      await pause(20)
      found = (await shown(url, ca)).trim() === next
    }
    if (found) takenUp++
    await pause(options.intervalMs)
  }
  load.ended = true
  await calls
  const seconds = (performance.now() - begin) / 1000
  for (const connection of kept) connection.close()
  const { requests, failures } = load
  return { seconds, requests, failures, rotations, takenUp, exitCode: await server.process.stop() }
}
