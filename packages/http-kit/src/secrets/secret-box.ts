import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'

/** The size of a key, in bytes. */
export const KEY_BYTES = 32

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Seals secrets, so that the store alone reveals none. */
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

/**
 * Reads the key that seals secrets: a file of 32 bytes. Creates the file with a random key, and
 * with mode 0600, if it does not exist.
 * @throws Error for a file that cannot be read or written, or that has another size
 */
export async function openKeyFile(path: string): Promise<Uint8Array> {
  await createKeyFile(path)
  const key = await readFile(path)
  if (key.byteLength === KEY_BYTES) return key
  throw new Error(`${path} has ${key.byteLength} bytes; a key has exactly ${KEY_BYTES}`)
}

async function createKeyFile(path: string): Promise<void> {
  let file
  try {
    file = await open(path, 'wx', 0o600)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return
    throw error
  }
  try {
    await file.writeFile(randomBytes(KEY_BYTES))
    // Without the key, all stored secrets are lost.
    await file.sync()
  } finally {
    await file.close()
  }
}
