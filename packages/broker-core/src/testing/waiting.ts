import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'

import type { BrokerError, BrokerErrorCode } from '../errors.ts'
import { isBrokerError } from '../errors.ts'

export { pause }

/** How long a case waits for what must come. Generous: only a failing case ever waits this long. */
export const PATIENCE_MS = 10_000

/** Collects what listeners are given, and lets a case await it. */
export class Inbox<T> {
  readonly items: T[] = []
  readonly #waiting = new Set<() => void>()

  readonly push = (item: T): void => {
    this.items.push(item)
    for (const wake of this.#waiting) wake()
  }

  /** Resolves with everything so far once there are at least `count` items. */
  async take(count: number): Promise<readonly T[]> {
    await this.until((items) => items.length >= count, `${count} items`)
    return this.items
  }

  /** Resolves once the items fulfil the condition. */
  async until(condition: (items: readonly T[]) => boolean, what: string): Promise<void> {
    if (condition(this.items)) return
    const fulfilled = Promise.withResolvers<void>()
    const wake = (): void => {
      if (condition(this.items)) fulfilled.resolve()
    }
    this.#waiting.add(wake)
    try {
      await within(fulfilled.promise, () => `${what}; there are ${this.items.length}`)
    } finally {
      this.#waiting.delete(wake)
    }
  }
}

/** The promise's own outcome, or a failure that says what was waited for. */
export async function within<T>(promise: Promise<T>, what: string | (() => string)): Promise<T> {
  const patience = new AbortController()
  const late = pause(PATIENCE_MS, undefined, { signal: patience.signal }).then(
    () => assert.fail(`waited ${PATIENCE_MS} ms for ${typeof what === 'string' ? what : what()}`),
    () => undefined,
  )
  try {
    await Promise.race([promise, late])
    return await promise
  } finally {
    patience.abort()
  }
}

/** For what no event announces, such as counters: asks until the assertion holds. */
export async function eventually(assertion: () => Promise<void> | void): Promise<void> {
  const end = Date.now() + PATIENCE_MS
  for (;;) {
    try {
      await assertion()
      return
    } catch (error) {
      if (Date.now() > end) throw error
    }
    await pause(25)
  }
}

/** Asserts that the call fails with a Broker error of this code, and gives that error. */
export async function rejectsWith(code: BrokerErrorCode, call: Promise<unknown>): Promise<BrokerError> {
  let error: unknown
  try {
    await within(call, `a failure with ${code}`)
  } catch (thrown) {
    error = thrown
  }
  assert.ok(error !== undefined, `the call fails with ${code}`)
  if (!isBrokerError(error, code)) throw error
  assert.notEqual(error.message, '', 'an error says what is wrong')
  return error
}

/** Asserts that the call fails with exactly this reason. */
export async function rejectsBecause(reason: unknown, call: Promise<unknown>): Promise<void> {
  const outcome = await within(
    call.then(
      () => 'no failure',
      (error: unknown) => error,
    ),
    'the call to end',
  )
  assert.equal(outcome, reason)
}
