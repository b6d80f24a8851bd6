/** Receives errors that no call can throw: of handlers, and of connections that are made again. */
export type ErrorListener = (error: unknown) => void

/** Writes one line for an error; the default of `onError`. */
export function reportError(error: unknown): void {
  // oxlint-disable-next-line no-console -- an error of a handler must not disappear where the caller takes no errors
  console.error('signalbox client:', error)
}
