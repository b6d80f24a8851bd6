/**
 * The reasons why a store cannot be opened or copied. After opening, calls fail only with Broker errors
 * (`ENGINE_UNAVAILABLE` and those listed at the Engine port).
 */
export const EMBEDDED_ENGINE_ERRORS = {
  /** Another process, or another engine in this process, has the store open. */
  STORE_LOCKED: 'the store is in use',
  /** A file of the store is truncated, or is not a Signalbox store. Nothing was changed. */
  STORE_DAMAGED: 'the store is damaged',
  /** The folder cannot be created, read or written. */
  STORE_UNWRITABLE: 'the store cannot be written',
  /** A newer version of Signalbox wrote the store. Nothing was changed. */
  STORE_VERSION: 'the store has another version',
  /** The backup file exists already, or cannot be written. */
  BACKUP_UNWRITABLE: 'the backup cannot be written',
  /** The target folder of `recoverStore` contains a store, or cannot be written. */
  RECOVERY_UNWRITABLE: 'the recovered store cannot be written',
  /** The target folder of `restoreStore` is not empty, or cannot be written. */
  RESTORE_UNWRITABLE: 'the restored store cannot be written',
  /** The value of an option is not allowed. */
  OPTION_INVALID: 'an option of the engine is not valid',
} as const

export type EmbeddedEngineErrorCode = keyof typeof EMBEDDED_ENGINE_ERRORS

/**
 * The error of `openEmbeddedEngine`, `backupStore`, `restoreStore` and `recoverStore`. `file` is the file or folder that the message is
 * about.
 */
export class EmbeddedEngineError extends Error {
  override readonly name = 'EmbeddedEngineError'
  readonly code: EmbeddedEngineErrorCode
  readonly file: string | undefined

  constructor(code: EmbeddedEngineErrorCode, message: string, file?: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.file = file
  }
}
