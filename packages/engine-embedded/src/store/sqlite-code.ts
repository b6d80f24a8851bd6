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

/**
 * After one of these nobody knows what is on disk and what is only in the page cache: the connection must be given up
 * and the store read again. Above all a failed sync must never be repeated: the kernel forgets the pages it could not
 * write, and the second sync would succeed without them.
 */
export function isFatal(error: unknown): boolean {
  return /^SQLITE_(IOERR|CORRUPT|NOTADB|CANTOPEN|READONLY|PROTOCOL|NOMEM|INTERNAL)/.test(sqliteCode(error))
}
