import { readFileSync } from 'node:fs'

import { certificateOf, checkKeyPair } from './certificates.ts'

/** The TLS of a client: the authorities that it trusts, and its own certificate, in PEM. */
export interface ClientTls {
  /** @default the authorities of the system */
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
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
  const trusted = ca === undefined ? {} : { ca }
  if (!certFile && !keyFile) return trusted
  if (!certFile || !keyFile) {
    throw new Error(
      `${certFile ? '--key-file' : '--cert-file'} is missing; allowed: a certificate and its key, or neither`,
    )
  }
  const pair = { cert: read('--cert-file', certFile), key: read('--key-file', keyFile) }
  checkKeyPair(pair, certificateOf(pair.cert, '--cert-file'), '--key-file')
  return { ...trusted, ...pair }
}

function read(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new Error(`${name} is ${JSON.stringify(file)}, which cannot be read (${code})`, { cause: error })
  }
}
