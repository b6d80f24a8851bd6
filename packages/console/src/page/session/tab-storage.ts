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
