import { Buffer } from 'node:buffer'
import type { KeyObject } from 'node:crypto'
import { createHmac, createSecretKey, randomBytes } from 'node:crypto'

/** The prefix of a secret of Standard Webhooks. */
const PREFIX = 'whsec_'

/** The sizes of a secret that Standard Webhooks allows, in bytes. */
const MIN_BYTES = 24
const MAX_BYTES = 64

/** The size of a generated secret, in bytes. */
const GENERATED_BYTES = 32

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/** The allowed form of a secret, for error texts. */
export const SECRET_FORM = `whsec_ and the base64 of ${MIN_BYTES} to ${MAX_BYTES} bytes`

export function randomSecret(): Uint8Array {
  return randomBytes(GENERATED_BYTES)
}

/** Returns a secret as text: `whsec_…`. */
export function secretText(secret: Uint8Array): string {
  return PREFIX + Buffer.from(secret).toString('base64')
}

/** Returns the bytes of a secret `whsec_…`; `undefined` for a text in another form. */
export function parseSecret(text: string): Uint8Array | undefined {
  if (!text.startsWith(PREFIX) || text.length > 128) return undefined
  const encoded = text.slice(PREFIX.length)
  if (!BASE64.test(encoded)) return undefined
  const bytes = Buffer.from(encoded, 'base64')
  return bytes.byteLength >= MIN_BYTES && bytes.byteLength <= MAX_BYTES ? bytes : undefined
}

/** Returns the key of a secret, for {@link signedHeaders}: `createHmac` with bytes makes one for each signature. */
export function signingKey(secret: Uint8Array): KeyObject {
  return createSecretKey(secret)
}

/**
 * Returns the headers of Standard Webhooks 1.0 that identify and sign a delivery, with one signature for each key.
 * Without keys there is no signature.
 * @param timestampMs The time of the attempt, in ms since the epoch
 */
export function signedHeaders(
  keys: readonly KeyObject[],
  id: string,
  timestampMs: number,
  body: Uint8Array,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(timestampMs / 1000))
  const head = `${id}.${timestamp}.`
  const signatures = keys.map((key) => `v1,${createHmac('sha256', key).update(head).update(body).digest('base64')}`)
  const identified = { 'webhook-id': id, 'webhook-timestamp': timestamp }
  return signatures.length === 0 ? identified : { ...identified, 'webhook-signature': signatures.join(' ') }
}
