import { DamagedRowError } from './store/sqlite-code.ts'

/**
 * The body as it may be posted to the writer: a view of a larger buffer would take all of that along, and small
 * Buffers are views of a shared one.
 */
export function ownBody(body: Uint8Array): Uint8Array {
  return body.byteLength === body.buffer.byteLength ? body : new Uint8Array(body)
}

/** A plain Uint8Array on what SQLite returned as a Buffer. @throws DamagedRowError */
export function plainBytes(bytes: Uint8Array): Uint8Array {
  if (!(bytes instanceof Uint8Array)) throw new DamagedRowError('the body of a message cannot be read')
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
