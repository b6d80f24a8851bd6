import { setTimeout as pause } from 'node:timers/promises'

import { API, isApiError } from './errors.ts'

const TRIES = 6
const PAUSE_MS = 50

/**
 * Makes something that every node makes when it finds it missing. Of several that start at once a server tells one that
 * the stream is not there, and then that its subjects are taken: so it looks again.
 */
export async function sharedSetUp<T>(make: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await make()
    } catch (error) {
      if (tries === TRIES || !isApiError(error, API.SUBJECTS_OVERLAP)) throw error
      await pause(PAUSE_MS * tries)
    }
  }
}
