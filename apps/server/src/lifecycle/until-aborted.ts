/**
 * Waits for something that is being opened, until the signal is aborted. What opens after that is closed again.
 * @throws the signal's reason, and what `opening` rejects with
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
    // Nobody waits for it any more, so nobody hears how it went.
    if (signal.aborted) opening.then(close).catch(() => {})
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
