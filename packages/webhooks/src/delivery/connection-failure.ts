/** The class of a failed connection, for the owner of a subscription. It reveals nothing else about the network. */
export type ConnectionFailure = 'connection_refused' | 'timeout' | 'tls_error'

const TLS_CODE = /^(?:ERR_(?:TLS|SSL)_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|EPROTO)/
const TIMEOUT_CODE = /TIME(?:D)?OUT/

/** Returns the class of a connection's error. */
export function classOf(error: unknown): ConnectionFailure {
  if (!(error instanceof Error)) return 'connection_refused'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (TLS_CODE.test(code)) return 'tls_error'
  // Without a code it is the deadline of the client.
  return code === '' || TIMEOUT_CODE.test(code) ? 'timeout' : 'connection_refused'
}
