import type { KeyObject } from 'node:crypto'

import type { CryptoKey, FlattenedJWSInput, JWSHeaderParameters } from 'jose'

/** Finds the key that must have signed a token. Rejects if there is none. */
export type FindKey = (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<CryptoKey | KeyObject>

/** The keys in use. A source may replace them while the server runs. */
export interface KeySource extends Disposable {
  /** The allowed signature algorithms. The header of a token never extends them. */
  readonly algorithms: readonly string[]
  /** A number that changes with the keys. Earlier verifications are then no longer valid. */
  readonly version: number
  readonly find: FindKey
}

/** Events of a key source, for a log. */
export interface KeyEvents {
  /** Runs after the keys changed. */
  changed(): void
  /** Runs when keys cannot be fetched or read; the earlier keys stay in use. Called once for each reason. */
  failed(reason: string): void
}
