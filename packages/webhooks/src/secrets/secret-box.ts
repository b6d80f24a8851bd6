import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

import { KEY_BYTES } from './key-file.ts'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Seals the secrets of subscriptions, so that the store alone reveals none. */
export class SecretBox {
  readonly #key: Uint8Array

  /** @param key 32 bytes */
  constructor(key: Uint8Array) {
    if (key.byteLength !== KEY_BYTES)
      throw new RangeError(`key: it has ${key.byteLength} bytes; it must have ${KEY_BYTES}`)
    this.#key = key
  }

  /** Seals a secret for one place, such as the id of a subscription. It cannot be opened for another place. */
  seal(secret: Uint8Array, place: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce).setAAD(Buffer.from(place))
    return Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]).toString('base64')
  }

  /** Opens a sealed secret; returns `undefined` if it was sealed with another key or for another place. */
  open(sealed: string, place: string): Uint8Array | undefined {
    const bytes = Buffer.from(sealed, 'base64')
    if (bytes.byteLength < NONCE_BYTES + TAG_BYTES) return undefined
    const nonce = bytes.subarray(0, NONCE_BYTES)
    const decipher = createDecipheriv(ALGORITHM, this.#key, nonce).setAAD(Buffer.from(place))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    try {
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
    } catch {
      return undefined
    }
  }
}
