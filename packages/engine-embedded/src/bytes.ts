import { DamagedRowError } from './store/sqlite-code.ts'

/**
 * Returns the body in a form that is cheap to post to the writer. Posting a view would copy its whole buffer, and small
 * Buffers are views of a shared one.
 */
export function ownBody(body: Uint8Array): Uint8Array {
  return body.byteLength === body.buffer.byteLength ? body : new Uint8Array(body)
}

/** Converts a Buffer from SQLite to a plain Uint8Array. @throws DamagedRowError */
export function plainBytes(bytes: Uint8Array): Uint8Array {
  if (!(bytes instanceof Uint8Array)) throw new DamagedRowError('the body of a message cannot be read')
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
