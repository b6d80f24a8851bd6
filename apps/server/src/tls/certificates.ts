import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'

/** A certificate with its key, and the authorities that the other side's certificate must be of, in PEM. */
export interface KeyPair {
  readonly cert: string
  readonly key: string
  readonly ca?: string
}

/** Returns the first certificate of a text. `name` is the setting, for the message. @throws Error if there is none */
export function certificateOf(text: string, name: string): X509Certificate {
  try {
    return new X509Certificate(text)
  } catch (error) {
    throw new Error(`${name}: it contains no certificate in PEM; it must contain -----BEGIN CERTIFICATE-----`, {
      cause: error,
    })
  }
}

/** Checks that a key is that of its certificate. `name` is the setting of the key. @throws Error if it is not */
export function checkKeyPair(pair: KeyPair, certificate: X509Certificate, name: string): void {
  try {
    createSecureContext({ ...pair })
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    throw new Error(
      `${name}: it does not contain the private key, without passphrase, of the certificate for ${certificate.subject}${reason}`,
      { cause: error },
    )
  }
}
