import { setTimeout as pause } from 'node:timers/promises'

import { API, isApiError } from './errors.ts'

const TRIES = 6
const PAUSE_MS = 50

/**
 * Creates an object that every node creates if it is missing. When several nodes start at once, a server may
 * report to one that the stream does not exist, and then that its subjects are taken; that node tries again.
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
