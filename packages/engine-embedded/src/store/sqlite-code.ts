/** SQLite's extended result code of an error, such as `SQLITE_FULL`; empty when it is none of SQLite's. */
export function sqliteCode(error: unknown): string {
  if (!(error instanceof Error) || !('code' in error)) return ''
  const { code } = error
  return typeof code === 'string' && code.startsWith('SQLITE_') ? code : ''
}

/** The disk or a quota has no room; nothing was written and the connection is as good as before. */
export function isFull(error: unknown): boolean {
  return sqliteCode(error) === 'SQLITE_FULL'
}

/** A row holds what was never written to it. */
export class DamagedRowError extends Error {
  override readonly name = 'DamagedRowError'
}

/**
 * A page or a row cannot be read. The transaction that met it is rolled back; the connection is as good as before, and so
 * is everything on other pages.
 */
export function isDamage(error: unknown): boolean {
  return (
    error instanceof DamagedRowError ||
    /^SQLITE_(CORRUPT|IOERR_(READ|SHORT_READ|DATA|CORRUPTFS)$)/.test(sqliteCode(error))
  )
}

/** The file as a whole is no store, or not one that can be read. Opening it again does not help. */
export function isHopeless(code: string): boolean {
  return /^SQLITE_(CORRUPT|NOTADB)/.test(code)
}

/**
 * After one of these nobody knows what is on disk and what is only in the page cache: the connection must be given up
 * and the store read again. Above all a failed sync must never be repeated: the kernel forgets the pages it could not
 * write, and the second sync would succeed without them.
 */
export function isFatal(error: unknown): boolean {
  return /^SQLITE_(IOERR|NOTADB|CANTOPEN|READONLY|PROTOCOL|NOMEM|INTERNAL)/.test(sqliteCode(error)) && !isDamage(error)
}
