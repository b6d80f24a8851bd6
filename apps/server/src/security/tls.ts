import { X509Certificate } from 'node:crypto'
import type { RequestListener, Server, ServerOptions } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import { createServer } from 'node:https'
import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

import { certificateOf, checkKeyPair } from '@signalbox/cli/internal'
import { watchFiles } from '@signalbox/http-kit'
import { Refusals } from '@signalbox/http-kit/internal'

import type { Config } from '../config/schema.ts'
import { ServerError } from '../errors.ts'
import type { Logger } from '../logging/logger.ts'
import type { NotifySecurity } from './events.ts'

/** The time for a client's handshake, in ms. */
const HANDSHAKE_MS = 10_000

/** The certificate of the server. With `ca`, clients must present a certificate of one of these authorities. */
interface Material {
  readonly cert: string
  readonly key: string
  readonly ca: string | undefined
  readonly minVersion: 'TLSv1.2'
}

/**
 * The security mode of a listener if it is not plain: TLS, or mutual TLS.
 */
export interface Tls extends Disposable {
  readonly mode: 'SecurityModeTLS' | 'SecurityModeMTLS'
  /** Creates a server with these certificates. New certificates apply without dropping connections. */
  createServer(options: ServerOptions, handler: RequestListener): Server
}

export interface TlsOptions {
  readonly log: Logger
  readonly notify: NotifySecurity
  readonly lookMs?: number
  /** @default 10000 */
  readonly handshakeMs?: number
  /** The section of the configuration, for messages. @default security */
  readonly section?: 'security' | 'api.security'
}

/**
 * Reads the certificates. Undefined if there are none: SecurityModeNone.
 * @throws ServerError CONFIG_INVALID for files that cannot be used
 */
export function openTls(settings: Config['security'], options: TlsOptions): Tls | undefined {
  const { certFile, keyFile, caFile } = settings
  if (certFile === '') return undefined
  const { log, notify, lookMs, handshakeMs = HANDSHAKE_MS, section = 'security' } = options
  const mutual = caFile !== ''
  const servers = new Set<HttpsServer>()
  const refusals = new Refusals((refusal) => notify({ kind: 'handshake.failed', ...refusal }))
  const watched = read(section, () =>
    watchFiles(mutual ? [certFile, keyFile, caFile] : [certFile, keyFile], {
      parse: ([cert = '', key = '', ca]) => checked(section, cert, key, ca),
      changed(material) {
        for (const server of servers) server.setSecureContext(material)
        const { subject, validTo } = new X509Certificate(material.cert)
        notify({ kind: 'certificates.reloaded', subject, validTo })
      },
      refused: ({ message }) => notify({ kind: 'certificates.refused', reason: message }),
      lookMs,
    }),
  )
  warnWhenExpired(log, section, watched.value)
  return {
    mode: mutual ? 'SecurityModeMTLS' : 'SecurityModeTLS',
    createServer(httpOptions, handler) {
      const server = createServer(
        {
          ...httpOptions,
          ...watched.value,
          requestCert: mutual,
          rejectUnauthorized: mutual,
          handshakeTimeout: handshakeMs,
        },
        handler,
      )
      servers.add(server)
      server.once('close', () => servers.delete(server))
      server.on('tlsClientError', (error, socket) => {
        const code = 'code' in error ? String(error.code) : error.message
        refusals.add(socket.remoteAddress, code)
        if (code === 'ERR_SSL_HTTP_REQUEST') answerPlainHttp(socket)
      })
      if (mutual) {
        server.on('secureConnection', (socket) => {
          const peer = nameOf(socket)
          peerNames.set(socket, peer)
          log.info({ peer, address: socket.remoteAddress }, 'client certificate accepted')
        })
      }
      return server
    },
    [Symbol.dispose]() {
      watched[Symbol.dispose]()
      refusals[Symbol.dispose]()
    },
  }
}

const PLAIN_HTTP = 'this port speaks TLS, and the request was plain HTTP; use https:// in the URL\n'

/** The time for a client to read the answer and close the connection, in ms. */
const PLAIN_ANSWER_MS = 2_000

/** Answers a request in plain HTTP before its connection is closed: the client would see only a reset. */
function answerPlainHttp(socket: TLSSocket): void {
  // The connection below TLS has no public name.
  const connection: unknown = Reflect.get(socket, '_parent')
  if (!(connection instanceof Socket) || !connection.writable) return
  const head = [
    'HTTP/1.1 400 Bad Request',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${PLAIN_HTTP.length}`,
    'Connection: close',
  ]
  connection.on('error', () => {})
  connection.setTimeout(PLAIN_ANSWER_MS, () => connection.destroy())
  connection.end(`${head.join('\r\n')}\r\n\r\n${PLAIN_HTTP}`)
}

/** Names by connection, so that a certificate is not parsed for each request. */
const peerNames = new WeakMap<TLSSocket, string>()

/** Returns the CN of the client's certificate. For the log only: tokens identify callers (S8). */
export function peerName(socket: unknown): string | undefined {
  return socket instanceof TLSSocket ? peerNames.get(socket) : undefined
}

function nameOf(socket: TLSSocket): string {
  const name: unknown = socket.getPeerCertificate().subject.CN
  return Array.isArray(name) ? name.join(', ') : String(name)
}

/** @throws Error if the texts contain no certificate with its key */
function checked(section: string, cert: string, key: string, ca: string | undefined): Material {
  if (ca !== undefined) certificateOf(ca, `${section}.caFile`)
  checkKeyPair({ cert, key }, { cert: `${section}.certFile`, key: `${section}.keyFile` })
  return { cert, key, ca, minVersion: 'TLSv1.2' }
}

function read<T>(section: string, open: () => T): T {
  try {
    return open()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ServerError('CONFIG_INVALID', [reason.startsWith(`${section}.`) ? reason : `${section}: ${reason}`], {
      cause: error,
    })
  }
}

function warnWhenExpired(log: Logger, section: string, { cert }: Material): void {
  const { subject, validFrom, validTo } = new X509Certificate(cert)
  const now = Date.now()
  if (Date.parse(validFrom) <= now && now <= Date.parse(validTo)) return
  log.warn(
    { subject, validFrom, validTo },
    `certificate of ${section === 'security' ? '' : 'API_'}SECURITY_CERT_FILE expired or not valid yet: clients refuse it`,
  )
}
