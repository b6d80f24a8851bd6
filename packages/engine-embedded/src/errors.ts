/**
 * Why a store cannot be opened or copied, in one table. Once it is open, calls fail with Broker errors only
 * (`ENGINE_UNAVAILABLE` and the ones the Engine port names).
 */
export const EMBEDDED_ENGINE_ERRORS = {
  /** Another process, or another engine in this one, has the store open. */
  STORE_LOCKED: 'the store is in use',
  /** A file of the store is cut short or is no Signalbox store. Nothing was touched. */
  STORE_DAMAGED: 'the store is damaged',
  /** The folder cannot be created, read or written. */
  STORE_UNWRITABLE: 'the store cannot be written',
  /** The store was written by a newer version of Signalbox. Nothing was touched. */
  STORE_VERSION: 'the store has another version',
  /** The file of a backup is there already, or cannot be written. */
  BACKUP_UNWRITABLE: 'the backup cannot be written',
  /** `recoverStore` found a store in its target folder, or cannot write there. */
  RECOVERY_UNWRITABLE: 'the recovered store cannot be written',
  /** An option is out of its range. */
  OPTION_INVALID: 'an option of the engine is not valid',
} as const

export type EmbeddedEngineErrorCode = keyof typeof EMBEDDED_ENGINE_ERRORS

/** `openEmbeddedEngine` rejects with this, and `backupStore` and `recoverStore` throw it. `file` is the file or folder that the message speaks of. */
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
