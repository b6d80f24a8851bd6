import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Whether certificates can be made here. */
export const HAS_OPENSSL = hasOpenssl()

function hasOpenssl(): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export interface Certificate {
  readonly certFile: string
  readonly keyFile: string
}

/** A certification authority of the test's own. */
export class Authority {
  readonly #folder: string
  readonly caFile: string

  constructor(folder: string, name: string) {
    this.#folder = join(folder)
    this.caFile = join(folder, `${name}.crt`)
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', this.#key]
    this.#run(['req', '-x509', ...key, '-out', this.caFile, '-days', '2', '-subj', `/CN=${name}`])
  }

  get #key(): string {
    return this.caFile.replace(/crt$/, 'key')
  }

  #run(arguments_: readonly string[]): void {
    execFileSync('openssl', [...arguments_], { stdio: 'ignore', cwd: this.#folder })
  }

  /** A certificate for 127.0.0.1, as server and as client. */
  async issue(name: string): Promise<Certificate> {
    const [certFile, keyFile] = [join(this.#folder, `${name}.crt`), join(this.#folder, `${name}.key`)]
    const request = join(this.#folder, `${name}.csr`)
    const extensions = join(this.#folder, `${name}.ext`)
    await writeFile(extensions, 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n')
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile]
    this.#run(['req', ...key, '-out', request, '-subj', `/CN=${name}`])
    const signer = ['-CA', this.caFile, '-CAkey', this.#key, '-CAcreateserial']
    this.#run(['x509', '-req', '-in', request, ...signer, '-out', certFile, '-days', '2', '-extfile', extensions])
    return { certFile, keyFile }
  }
}
