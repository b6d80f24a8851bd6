// cspell:ignore TLSV
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { Readable } from 'node:stream'
import { createSecureContext } from 'node:tls'

import type { Fetch } from '@signalbox/client'

/** The TLS of a client: the authorities that it trusts, and its own certificate, in PEM. */
export interface ClientTls {
  /** @default the authorities of the system */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

/** The TLS of a command's connections to a URL, and a `fetch` that uses it. */
export interface CommandTls {
  readonly tls: ClientTls | undefined
  readonly fetch: Fetch
}

/** The files of a client's TLS; `undefined` and an empty text mean none. */
export interface ClientTlsFiles {
  readonly caFile: string | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
}

/** Reads the files of a client's TLS. @throws Error for files that cannot be used */
export function readClientTls({ caFile, certFile, keyFile }: ClientTlsFiles): ClientTls {
  const ca = caFile ? read('--ca-file', caFile) : undefined
  if (ca !== undefined) certificateOf(ca, '--ca-file')
  if (!certFile && !keyFile) return { ca }
  if (!certFile || !keyFile) {
    throw new Error(
      `${certFile ? '--key-file' : '--cert-file'} is missing; allowed: a certificate and its key, or neither`,
    )
  }
  const pair = { cert: read('--cert-file', certFile), key: read('--key-file', keyFile) }
  checkKeyPair(pair, { cert: '--cert-file', key: '--key-file' })
  return { ca, ...pair }
}

/**
 * Returns the first certificate of a text.
 * @param name The option or the setting of the file, for the message
 */
export function certificateOf(text: string, name: string): X509Certificate {
  try {
    return new X509Certificate(text)
  } catch (error) {
    throw new Error(`${name}: it contains no certificate in PEM; it must contain -----BEGIN CERTIFICATE-----`, {
      cause: error,
    })
  }
}

/** A certificate and its private key. */
interface KeyPair {
  readonly cert: string
  readonly key: string
}

/**
 * Checks that TLS can use a certificate with its key, both in PEM.
 * @param names The options or the settings of the two files, for the message
 * @throws Error for a text without a certificate, or the key of another one
 */
export function checkKeyPair(pair: KeyPair, names: KeyPair): void {
  const { subject } = certificateOf(pair.cert, names.cert)
  try {
    createSecureContext(pair)
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    throw new Error(
      `${names.key}: it does not contain the private key, without passphrase, of the certificate for ${subject}${reason}`,
      { cause: error },
    )
  }
}

function read(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new Error(`${name} is ${JSON.stringify(file)}, which cannot be read (${code})`, { cause: error })
  }
}

/** Statuses of answers that have no body. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

/**
 * Returns a `fetch` whose connections have the TLS: the global one takes no certificates without the classes of its
 * library. Bodies are texts, and redirects are errors.
 */
export function fetchWith(tls: ClientTls): Fetch {
  const agent = new Agent({ ...tls, keepAlive: true })
  return async (url, init) => {
    if (!url.startsWith('https:')) return fetch(url, init)
    const answer = await send(agent, url, init)
    const { statusCode = 0, rawHeaders } = answer
    if (statusCode >= 300 && statusCode <= 399 && answer.headers.location !== undefined) {
      answer.destroy()
      throw new TypeError(`${url} answered with a redirect`)
    }
    const headers = new Headers()
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) headers.append(rawHeaders[i] ?? '', rawHeaders[i + 1] ?? '')
    if (!WITHOUT_BODY.has(statusCode)) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of Node and of the platform differ
      return new Response(Readable.toWeb(answer) as ReadableStream<Uint8Array>, { status: statusCode, headers })
    }
    answer.resume()
    return new Response(null, { status: statusCode, headers })
  }
}

/** Sends a request. Resolves with the head of the answer. Aborting the signal closes the connection. */
function send(
  agent: Agent,
  url: string,
  { method = 'GET', headers, body, signal }: RequestInit,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    if (body !== undefined && body !== null && typeof body !== 'string') throw new TypeError('the body must be a text')
    const outgoing = request(url, { agent, method, headers: Object.fromEntries(new Headers(headers)) })
    const abort = (): void => {
      const reason: unknown = signal?.reason
      outgoing.destroy(reason instanceof Error ? reason : new Error(String(reason)))
    }
    outgoing.once('response', resolve)
    outgoing.on('error', reject)
    outgoing.once('close', () => signal?.removeEventListener('abort', abort))
    if (signal?.aborted === true) abort()
    else signal?.addEventListener('abort', abort, { once: true })
    outgoing.end(body ?? undefined)
  })
}

// cspell:ignore TLSV
const UNTRUSTED =
  "the certificate of the server is not of a trusted authority; give the file of the server's authority with --ca-file or SIGNALBOX_CA_FILE"

const NO_CERTIFICATE =
  'the server requires a certificate of one of its authorities; give yours with --cert-file and --key-file, or SIGNALBOX_CERT_FILE and SIGNALBOX_KEY_FILE'

/** Remedies by the code of the error. */
const REMEDIES: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  CERT_HAS_EXPIRED: 'the certificate of the server has expired; renew it at the server',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'the certificate of the server is for another host name; use a name that the certificate has',
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: NO_CERTIFICATE,
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: NO_CERTIFICATE,
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: NO_CERTIFICATE,
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server speaks plain HTTP; use http:// in the URL',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the server speaks plain HTTP; use http:// in the URL',
}

/** Codes of connections that the other side closed. */
const CLOSED: ReadonlySet<string> = new Set(['ECONNRESET', 'UND_ERR_SOCKET'])

const PERHAPS_NO_CERTIFICATE =
  'check that the server runs at this URL, and, if it requires a certificate of one of its authorities, give yours with --cert-file and --key-file'

/** The failure of a TLS handshake. */
export interface TlsFailure {
  readonly code: string
  /** The reason, and the remedy. */
  readonly text: string
}

/** Returns the failed handshake that caused an error; `undefined` for other errors. */
export function tlsFailureOf(error: unknown): TlsFailure | undefined {
  const code = codesOf(error).find((each) => REMEDIES[each] !== undefined)
  const text = code === undefined ? undefined : REMEDIES[code]
  return code === undefined || text === undefined ? undefined : { code, text }
}

/**
 * Returns what to do after a call to a URL that did not reach its server; `undefined` if TLS is no possible cause. With
 * TLS 1.3 a server that requires a certificate closes a connection that was open already, and its reason can be lost.
 */
export function tlsRemedy(error: unknown, url: string): string | undefined {
  const failure = tlsFailureOf(error)
  if (failure !== undefined) return failure.text
  const closed = url.startsWith('https:') && codesOf(error).some((code) => CLOSED.has(code))
  return closed ? PERHAPS_NO_CERTIFICATE : undefined
}

/** Returns the codes of an error and of its causes. */
function codesOf(error: unknown): readonly string[] {
  const codes: string[] = []
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if ('code' in at && typeof at.code === 'string') codes.push(at.code)
  }
  return codes
}
