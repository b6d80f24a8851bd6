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

/** Returns the failed handshake that an error, or one of its causes, stands for; `undefined` for other errors. */
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
