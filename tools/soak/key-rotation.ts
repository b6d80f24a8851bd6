import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

import type { CryptoKey, JWK } from 'jose'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { KeepAliveConnection, postBytes } from '../harness/keep-alive-connection.ts'
import { startSignalbox } from '../harness/signalbox-server.ts'
import type { RotationOptions, RotationReport } from './rotation.ts'
import { isResult, replaceFile, RotationLoad } from './rotation.ts'

export interface KeyRotationOptions extends RotationOptions {
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

/** Publishes its latest value over HTTP. */
async function openProvider() {
  let keySet = '{"keys":[]}'
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(keySet)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = (): void => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${port}/jwks.json`, publish: (text: string) => void (keySet = text), close }
}

/** Rotates keys while clients call the real server with tokens that they renew. */
export async function rotateKeys(options: KeyRotationOptions): Promise<RotationReport> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await TemporaryFolder.create('key-rotation'))
  const file = folder.join('jwks.json')
  const provider = options.source === 'url' ? await openProvider() : undefined
  stack.defer(() => provider?.close())
  const issuer = new Issuer(provider?.publish ?? ((text) => replaceFile(file, text)))
  await issuer.rotate(0)
  const server = stack.use(
    await startSignalbox({
      storePath: folder.join('store'),
      env: {
        LOG_LEVEL: 'error',
        AUTHENTICATION_ENABLE: 'true',
        ...(provider === undefined ? { AUTHENTICATION_JWKS_FILE: file } : { AUTHENTICATION_JWKS_URL: provider.url }),
      },
    }),
  )
  const load = new RotationLoad()
  const accepted = new Set<string>()
  const opened = Array.from({ length: options.clients }, (_, i) =>
    openClient(issuer, server.http, `client-${i}`, accepted),
  )
  const clients = await Promise.all(opened)
  const begin = performance.now()
  const calls = Promise.all(clients.map(({ call }) => load.client(call)))
  const leadMs = provider === undefined ? FILE_LEAD_MS : 0
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
