import { Store } from '../api/store.ts'

const KEY = 'signalbox.token'

/**
 * The operator's token. It is in memory and in `sessionStorage`, which ends with the tab, and travels
 * only in the header `Authorization`.
 */
export const token = new Store<string | undefined>(stored())

/** `true` after an answer that asked for another token. */
export const signedOut = new Store(false)

function stored(): string | undefined {
  try {
    return sessionStorage.getItem(KEY) ?? undefined
  } catch {
    return undefined
  }
}

/** Keeps the token for this tab. */
export function signIn(value: string): void {
  try {
    sessionStorage.setItem(KEY, value)
  } catch {
    // A browser may forbid storage; the token is then lost when the page is loaded again.
  }
  token.set(value)
  signedOut.set(false)
}

/** Forgets the token. */
export function signOut(): void {
  try {
    sessionStorage.removeItem(KEY)
  } catch {}
  token.set(undefined)
  signedOut.set(true)
}
