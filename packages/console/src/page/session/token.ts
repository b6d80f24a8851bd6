import { Store } from '../api/store.ts'
import { tabStorage } from './tab-storage.ts'

const KEY = 'signalbox.token'

/**
 * The operator's token. It is in memory and in `sessionStorage`, which ends with the tab, and travels
 * only in the header `Authorization`.
 */
export const token = new Store<string | undefined>(tabStorage.get(KEY))

/** `true` after an answer that asked for another token. */
export const signedOut = new Store(false)

/** Keeps the token for this tab. */
export function keepToken(value: string): void {
  tabStorage.set(KEY, value)
  token.set(value)
  signedOut.set(false)
}

/** Forgets the token. */
export function forgetToken(): void {
  tabStorage.delete(KEY)
  token.set(undefined)
  signedOut.set(true)
}
