import { randomBytes } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'

/** The size of a key, in bytes. */
export const KEY_BYTES = 32

/**
 * Reads the key that seals the secrets of subscriptions: a file of 32 bytes. Creates the file with a random key, and
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
