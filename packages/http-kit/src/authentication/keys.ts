import { createPublicKey, createSecretKey } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { createRequire } from 'node:module'

import type * as Jose from 'jose'
import type { CryptoKey, FlattenedJWSInput, JSONWebKeySet, JWSHeaderParameters } from 'jose'

import { watchFiles } from '../watched-files.ts'

/** Finds the key that must have signed a token. Rejects if there is none. */
export type FindKey = (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<CryptoKey | KeyObject>

/** The keys in use. A source may replace them while the server runs. */
export interface KeySource extends Disposable {
  /** The allowed signature algorithms. The header of a token never extends them. */
  readonly algorithms: readonly string[]
  /** A number that changes with the keys. Earlier verifications are then no longer valid. */
  readonly version: number
  readonly find: FindKey
}

/** Events of a key source, for a log. */
export interface KeyEvents {
  /** Runs after the keys changed. */
  changed(): void
  /** Runs when keys cannot be fetched or read; the earlier keys stay in use. Called once for each reason. */
  failed(reason: string): void
}

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

/** Returns the keys of a file. The file is read again when it changes. @throws Error for a file without keys */
function keyFile(
  file: string,
  parse: (text: string) => { find: FindKey; algorithms: readonly string[] },
  events: KeyEvents,
  lookMs?: number,
): KeySource {
  let version = 0
  const watched = watchFiles([file], {
    parse: ([text = '']) => {
      try {
        return parse(text)
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        throw new RangeError(`${JSON.stringify(file)}: ${reason}`, { cause: error })
      }
    },
    changed() {
      version++
      events.changed()
    },
    refused: ({ message }) => events.failed(message),
    lookMs,
  })
  return {
    get algorithms() {
      return watched.value.algorithms
    },
    get version() {
      return version
    },
    find: (header, token) => watched.value.find(header, token),
    [Symbol.dispose]: () => watched[Symbol.dispose](),
  }
}

/** Returns the keys of a file with a JSON Web Key Set. */
export function keySetFile(file: string, wanted: readonly string[], events: KeyEvents, lookMs?: number): KeySource {
  const algorithms = keySetAlgorithms(wanted)
  return keyFile(file, (text) => ({ find: parseKeySet(text), algorithms }), events, lookMs)
}

/** Returns the key of a file with one public key or certificate in PEM. */
export function publicKeyFile(file: string, wanted: readonly string[], events: KeyEvents, lookMs?: number): KeySource {
  return keyFile(
    file,
    (text) => {
      const key = parsePublicKey(text)
      const algorithms = publicKeyAlgorithms(key, wanted)
      return { find: async () => key, algorithms }
    },
    events,
    lookMs,
  )
}

/** Returns the secret of a file as a key. */
export function secretFile(file: string, wanted: readonly string[], events: KeyEvents, lookMs?: number): KeySource {
  return keyFile(file, (text) => secretKey(secretIn(text), wanted), events, lookMs)
}

function parsePublicKey(text: string): KeyObject {
  // A reader of the private key can make tokens, so the server must not have it.
  if (text.includes('PRIVATE KEY-----')) throw new Error('it contains a private key; allowed is the public key alone')
  try {
    return createPublicKey(text)
  } catch (error) {
    throw new Error('it contains no public key in PEM; allowed is -----BEGIN PUBLIC KEY----- or a certificate', {
      cause: error,
    })
  }
}

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

/** The supported signature algorithms for each kind of key (RFC 7518, RFC 8037). `none` is not supported. */
const BY_KEY: Readonly<Record<string, readonly string[]>> = {
  'RSA key': ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  'RSA-PSS key': ['PS256', 'PS384', 'PS512'],
  'P-256 key': ['ES256'],
  'P-384 key': ['ES384'],
  'P-521 key': ['ES512'],
  'Ed25519 key': ['EdDSA', 'Ed25519'],
}

/** The fewest bytes of a secret (RFC 7518, section 3.2). */
const HMAC_BYTES: Readonly<Record<string, number>> = { HS256: 32, HS384: 48, HS512: 64 }

const KEY_SET_ALGORITHMS = [...new Set(Object.values(BY_KEY).flat())]

/** The default algorithms of a key set. */
const KEY_SET_DEFAULT = ['RS256', 'ES256', 'EdDSA']

/** The fewest bits of an RSA key. */
const MIN_RSA_BITS = 2048

/** Returns the algorithms of a set of public keys. @throws RangeError for an algorithm that no public key supports */
export function keySetAlgorithms(wanted: readonly string[]): readonly string[] {
  return chosen(wanted, KEY_SET_ALGORITHMS, KEY_SET_DEFAULT, 'a key set')
}

/**
 * Returns the algorithms of one public key; by default the first that fits.
 * @throws RangeError for an algorithm that the key does not support, an RSA key under 2048 bits, or an unsupported
 * key
 */
function publicKeyAlgorithms(key: KeyObject, wanted: readonly string[]): readonly string[] {
  const { modulusLength } = key.asymmetricKeyDetails ?? {}
  if (modulusLength !== undefined && modulusLength < MIN_RSA_BITS) {
    throw new RangeError(`the RSA key has ${modulusLength} bits; allowed are ${MIN_RSA_BITS} or more`)
  }
  const kind = kindOf(key)
  const fitting = BY_KEY[kind]
  if (fitting === undefined) throw new RangeError(`the ${kind} is not supported; allowed are RSA, EC and Ed25519 keys`)
  return chosen(wanted, fitting, fitting.slice(0, 1), `the ${kind}`)
}

/**
 * Returns the algorithms of a shared secret.
 * @throws RangeError for an unsupported algorithm, or a secret that is too short
 */
function secretAlgorithms(bytes: number, wanted: readonly string[]): readonly string[] {
  const algorithms = chosen(wanted, Object.keys(HMAC_BYTES), ['HS256'], 'a secret')
  const needed = Math.max(...algorithms.map((algorithm) => HMAC_BYTES[algorithm] ?? 0))
  if (bytes < needed) throw new RangeError(`it has ${bytes} bytes; allowed are ${needed} or more`)
  return algorithms
}

const CURVES: Readonly<Record<string, string>> = {
  prime256v1: 'P-256 key',
  secp384r1: 'P-384 key',
  secp521r1: 'P-521 key',
}

function kindOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string {
  if (asymmetricKeyType === 'rsa') return 'RSA key'
  if (asymmetricKeyType === 'rsa-pss') return 'RSA-PSS key'
  if (asymmetricKeyType === 'ed25519') return 'Ed25519 key'
  const curve = asymmetricKeyDetails?.namedCurve ?? String(asymmetricKeyType)
  return CURVES[curve] ?? `${curve} key`
}

function chosen(
  wanted: readonly string[],
  fitting: readonly string[],
  byDefault: readonly string[],
  what: string,
): readonly string[] {
  if (wanted.length === 0) return byDefault
  const other = wanted.find((algorithm) => !fitting.includes(algorithm))
  if (other === undefined) return wanted
  throw new RangeError(
    `algorithms: ${JSON.stringify(other)} cannot be used with ${what}; allowed are ${fitting.join(', ')}`,
  )
}

const require = createRequire(import.meta.url)

let loaded: typeof Jose | undefined

/** Returns jose, loaded on the first call: a server without authentication does not need its fifty files. */
export function jose(): typeof Jose {
  return (loaded ??= load())
}

function load(): typeof Jose {
  const library: typeof Jose = require('jose')
  return library
}
