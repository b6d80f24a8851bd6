import type { KeyObject } from 'node:crypto'

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
export function publicKeyAlgorithms(key: KeyObject, wanted: readonly string[]): readonly string[] {
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
export function secretAlgorithms(bytes: number, wanted: readonly string[]): readonly string[] {
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
