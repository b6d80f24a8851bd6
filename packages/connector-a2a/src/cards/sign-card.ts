import { sign } from 'node:crypto'

import type { JsonObject } from '@signalbox/http-kit'
import { canonicalJson } from '@signalbox/http-kit'

import type { CardKey } from './card-keys.ts'

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
