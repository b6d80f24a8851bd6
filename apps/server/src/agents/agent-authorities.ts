import { X509Certificate } from 'node:crypto'
import { getCACertificates } from 'node:tls'

import { readSmallFileSync } from '@signalbox/broker-core/internal'

import { ServerError } from '../errors.ts'

/**
 * The certificate authorities that agents' certificates are checked against: those of the file, beside the well-known ones.
 * @throws ServerError START_FAILED when the file cannot be read, or holds no certificate
 */
export function agentAuthorities(file: string): readonly string[] {
  try {
    const { text: pem } = readSmallFileSync(file)
    // Says at the start what a connection would only say when the first agent is called.
    void new X509Certificate(pem)
    return [...getCACertificates('default'), pem]
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'no certificate'
    throw new ServerError(
      'START_FAILED',
      [`connectors.a2a.agentCaFile: ${file} is no PEM file of certificates (${reason})`],
      {
        cause: error,
      },
    )
  }
}
