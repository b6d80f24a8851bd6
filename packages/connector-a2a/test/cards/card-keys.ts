import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { testFolder } from '@signalbox/testkit/test-folder'

/** A private key, as a PEM file has it. */
export function newPem(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
}

/** A private key, as a JSON Web Key Set has it. */
export function newJwk(): object {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
}

/** A file with these keys, which ends with the test. */
export function keyFile(...keys: readonly string[]): string {
  const file = join(testFolder(), 'card-keys.pem')
  writeFileSync(file, keys.join(''))
  return file
}
