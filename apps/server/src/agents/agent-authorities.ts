import { X509Certificate } from 'node:crypto'
import { getCACertificates } from 'node:tls'

import { readSmallFileSync } from '@signalbox/broker-core/internal'

import { ServerError } from '../errors.ts'

/**
 * Returns the certificate authorities for agents' certificates: the authorities in the file and the
 * well-known ones.
 * @throws ServerError START_FAILED if the file cannot be read, or contains no certificate
 */
export function agentAuthorities(file: string): readonly string[] {
  try {
    const { text: pem } = readSmallFileSync(file)
    // Fails at the start instead of at the first call of an agent.
    void new X509Certificate(pem)
    return [...getCACertificates('default'), pem]
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'no certificate'
    throw new ServerError(
      'START_FAILED',
      [
        `connectors.a2a.agentCaFile: ${file} is not a PEM file with certificates (${reason}); set the path of one, or leave it empty`,
      ],
      {
        cause: error,
      },
    )
  }
}
