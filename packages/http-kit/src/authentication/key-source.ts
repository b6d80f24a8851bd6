import type { KeyObject } from 'node:crypto'

import type { CryptoKey, FlattenedJWSInput, JWSHeaderParameters } from 'jose'

/** Finds the key that a token must be signed with. @throws (rejects) when there is none */
export type FindKey = (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<CryptoKey | KeyObject>

/** The keys in force: one place they come from, which may bring others while the server runs. */
export interface KeySource extends Disposable {
  /** What tokens may be signed with; what a token says of itself never widens it (S1). */
  readonly algorithms: readonly string[]
  /** Another number whenever the keys are others: what was verified before counts no more. */
  readonly version: number
  readonly find: FindKey
}

/** What happens to keys, for a log. */
export interface KeyEvents {
  /** Other keys are in force. */
  changed(): void
  /** Keys could not be had or read; those before stay in force. Once for each reason. */
  failed(reason: string): void
}
