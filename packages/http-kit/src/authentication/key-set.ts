import type { JSONWebKeySet } from 'jose'

import { jose } from './jose.ts'
import type { FindKey } from './key-source.ts'

/** Parses a JSON Web Key Set (RFC 7517). @throws Error for a text that is not a JSON Web Key Set */
export function parseKeySet(text: string): FindKey {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Error('it is not JSON; allowed is a JSON Web Key Set: {"keys": […]}', { cause: error })
  }
  if (!isKeySet(value))
    throw new Error('it is not a JSON Web Key Set; allowed is {"keys": […]} with keys that have a kty')
  return jose().createLocalJWKSet(value)
}

function isKeySet(value: unknown): value is JSONWebKeySet {
  if (typeof value !== 'object' || value === null || !('keys' in value) || !Array.isArray(value.keys)) return false
  const keys: readonly unknown[] = value.keys
  return keys.every((key) => typeof key === 'object' && key !== null && 'kty' in key && typeof key.kty === 'string')
}
