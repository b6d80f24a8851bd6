import type { KeyObject } from 'node:crypto'
import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'

import type { JsonObject } from '@signalbox/http-kit'
import { watchFiles } from '@signalbox/http-kit'
import { canonicalJson, isJsonObject, readJson } from '@signalbox/http-kit/internal'

/** A key that signs cards. */
export interface CardKey {
  /** The thumbprint of the public key (RFC 7638). */
  readonly kid: string
  /** The key that makes signatures. */
  readonly privateKey: KeyObject
  /** The public part, as the key set shows it. */
  readonly jwk: Readonly<Record<'kty' | 'crv' | 'x' | 'y' | 'kid' | 'use' | 'alg', string>>
}

/** The keys of a file, replaced when it changes. */
export interface CardKeys extends Disposable {
  /** The first signs, and all are published. */
  readonly keys: readonly CardKey[]
}

/** No keys: cards are not signed, and the key set is empty. */
export const NO_CARD_KEYS: CardKeys = { keys: [], [Symbol.dispose]() {} }

/** Events of the key file, for a log. */
export interface CardKeyEvents {
  /** Runs after the keys changed. */
  changed?(kids: readonly string[]): void
  /** Runs when the changed file cannot be read; the earlier keys stay in use. Called once for each reason. */
  failed?(reason: string): void
}

const PEM_BLOCK = /-----BEGIN ([A-Z0-9 ]{1,40})-----[^-]*-----END \1-----/g

const ALLOWED =
  'allowed: one or more private keys of EC P-256 without passphrase, in PEM or as a JSON Web Key Set {"keys": […]}'

/**
 * Opens a file with the private keys that sign cards. The file is read again when it changes.
 * @param lookMs Interval between checks of the file, in ms. @default 1000
 * @throws RangeError for a file that cannot be read or has other keys
 */
export function openCardKeys(file: string, events: CardKeyEvents = {}, lookMs?: number): CardKeys {
  try {
    const watched = watchFiles([file], {
      parse: ([text = '']) => parseCardKeys(text),
      changed: (keys) => events.changed?.(keys.map(({ kid }) => kid)),
      refused: ({ message }) => events.failed?.(`${JSON.stringify(file)}: ${message}`),
      lookMs,
    })
    return {
      get keys() {
        return watched.value
      },
      [Symbol.dispose]: () => watched[Symbol.dispose](),
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new RangeError(`${JSON.stringify(file)}: ${reason}`, { cause: error })
  }
}

/** @throws RangeError for a text without keys, or with other keys. It shows nothing of the text. */
function parseCardKeys(text: string): readonly CardKey[] {
  const json = readJson(text)
  const keys = json === undefined ? pemKeys(text) : setKeys(json.value)
  if (keys.length === 0) throw new RangeError(`it has no keys; ${ALLOWED}`)
  const cardKeys = keys.map(cardKey)
  return [...new Map(cardKeys.map((key) => [key.kid, key])).values()]
}

function pemKeys(text: string): readonly KeyObject[] {
  const blocks = [...text.matchAll(PEM_BLOCK)]
    // `openssl ecparam -genkey` writes the curve in a separate block.
    .filter(([, label]) => label !== 'EC PARAMETERS')
    .map(([block]) => block)
  return blocks.map((block, index) => privateKey(index, () => createPrivateKey(block)))
}

function setKeys(value: unknown): readonly KeyObject[] {
  const keys: unknown = isJsonObject(value) ? value['keys'] : undefined
  if (!Array.isArray(keys)) throw new RangeError(`it is JSON, but not a JSON Web Key Set; ${ALLOWED}`)
  return keys.map((jwk: unknown, index) =>
    privateKey(index, () => createPrivateKey({ key: Object(jwk), format: 'jwk' })),
  )
}

/** @throws RangeError that does not repeat the error of the parser: it could show a part of the key */
function privateKey(index: number, create: () => KeyObject): KeyObject {
  let key: KeyObject | undefined
  try {
    key = create()
  } catch {}
  if (key?.asymmetricKeyType !== 'ec' || key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
    throw new RangeError(`key ${index + 1} is not a private key of EC P-256; ${ALLOWED}`)
  }
  return key
}

function cardKey(key: KeyObject): CardKey {
  const { kty = '', crv = '', x = '', y = '' } = createPublicKey(key).export({ format: 'jwk' })
  // RFC 7638: these members in this order.
  const kid = createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url')
  return { kid, privateKey: key, jwk: { kty, crv, x, y, kid, use: 'sig', alg: 'ES256' } }
}

/** The path of the key set that verifies signatures. */
export const KEY_SET_PATH = '/.well-known/jwks.json'

/**
 * Returns a card that has no signatures with one of the gateway: a detached JWS (RFC 7515) with ES256 over
 * the canonical text of the card (A2A, section 8.4).
 */
export function signCard(card: JsonObject, { kid, privateKey }: CardKey, base: string): JsonObject {
  const header = { alg: 'ES256', typ: 'JOSE', kid, jku: `${base}${KEY_SET_PATH}` }
  const protectedHeader = encode(JSON.stringify(header))
  const input = `${protectedHeader}.${encode(canonicalJson(card))}`
  const signature = sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return { ...card, signatures: [{ protected: protectedHeader, signature: signature.toString('base64url') }] }
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64url')
}
