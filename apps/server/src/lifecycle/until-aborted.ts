/**
 * Waits for a part that is being opened, or until the signal is aborted. A part that opens later is
 * closed.
 * @throws the signal's reason, and the error of `opening`
 */
export async function untilAborted<T>(
  opening: Promise<T>,
  signal: AbortSignal | undefined,
  close: (late: T) => Promise<void>,
): Promise<T> {
  if (signal === undefined) return opening
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = (): void => reject(signal.reason)
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  try {
    return await Promise.race([opening, aborted])
  } catch (error) {
    // The caller has left with the signal's reason, so later errors have no receiver.
    if (signal.aborted) opening.then(close).catch(() => {})
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
