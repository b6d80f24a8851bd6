import { Store } from '../api/store.ts'

/**
 * `sessionStorage`, which ends with the tab. A browser may forbid it: the values are then lost when the
 * page is loaded again.
 */
export const tabStorage = {
  get(key: string): string | undefined {
    try {
      return sessionStorage.getItem(key) ?? undefined
    } catch {
      return undefined
    }
  },

  set(key: string, value: string): void {
    try {
      sessionStorage.setItem(key, value)
    } catch {}
  },

  delete(key: string): void {
    try {
      sessionStorage.removeItem(key)
    } catch {}
  },
}

const KEY = 'signalbox.token'

/**
 * The operator's token. It is in memory and in `sessionStorage`, which ends with the tab, and travels
 * only in the header `Authorization`.
 */
export const token = new Store<string | undefined>(tabStorage.get(KEY))

/** `true` while the page asks for a token: after an answer that required another one, and after a sign-out. */
export const signedOut = new Store(false)

/** Resolves when the page asks for no token. Rejects with the reason of the signal. */
export function untilSignedIn(signal?: AbortSignal): Promise<void> {
  if (!signedOut.value) return Promise.resolve()
  return new Promise((resolve, reject) => {
    const unfollow = signedOut.follow(() => {
      unfollow()
      resolve()
    })
    signal?.addEventListener('abort', () => {
      unfollow()
      reject(signal.reason)
    })
  })
}

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
