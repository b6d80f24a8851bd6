import { createSecretKey } from 'node:crypto'

import { secretAlgorithms } from './algorithms.ts'
import type { FindKey } from './key-source.ts'

/**
 * Returns the secret in the text of a file. One newline at the end is no part of it: editors and `echo` add one.
 * @throws Error for a file without a secret
 */
export function secretIn(text: string): string {
  const secret = text.replace(/\r?\n$/, '')
  if (secret === '') throw new Error('it is empty; allowed is a file with the secret alone')
  return secret
}

/** Returns a shared secret as a key. @throws RangeError for a secret that is too short */
export function secretKey(
  secret: string,
  wanted: readonly string[],
): { readonly find: FindKey; readonly algorithms: readonly string[] } {
  const bytes = new TextEncoder().encode(secret)
  const algorithms = secretAlgorithms(bytes.byteLength, wanted)
  const key = createSecretKey(bytes)
  return { find: async () => key, algorithms }
}
