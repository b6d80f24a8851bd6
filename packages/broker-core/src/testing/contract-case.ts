import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'

import type { EngineOptions } from '../engine/engine-options.ts'
import type { Engine } from '../engine/engine.ts'
import type { BrokerError, BrokerErrorCode } from '../errors.ts'
import { isBrokerError } from '../errors.ts'

/** The limits that a case needs. Omitted ones have the engine's default. */
export type ContractEngineOptions = EngineOptions

/** An engine under test. */
export interface ContractEngine {
  /** The running engine; a new one after {@link restart}. */
  readonly engine: Engine
  /** Closes the engine and opens it again on the same data, with the same options. */
  restart(): Promise<void>
  /** Closes the engine, unless it is closed, and removes its data. */
  dispose(): Promise<void>
}

/** The part that the author of an engine implements. */
export interface ContractHarness {
  /**
   * Opens a new, empty engine. A case that is not `isolated` passes no options and may get an engine that other cases
   * use at the same time: its channel names are unique, and it neither restarts nor closes the engine.
   */
  open(options?: ContractEngineOptions): Promise<ContractEngine>
}

/**
 * One behavior that every engine must have. Works with any test runner: it resolves, or rejects with an AssertionError.
 */
export interface ContractCase {
  readonly name: string
  /**
   * `true` if the case needs its own engine: it sets limits, restarts or closes the engine, or reads values of the
   * whole engine.
   */
  readonly isolated: boolean
  run(harness: ContractHarness): Promise<void>
}

/** The arguments of a case. */
export interface CaseContext {
  readonly engine: Engine
  readonly restart: () => Promise<void>
  /** Returns a channel name that no other case uses. */
  readonly channel: (label: string) => string
}

type Run = (context: CaseContext) => Promise<void>

/** Creates a case that can share its engine. */
export function contractCase(name: string, run: Run): ContractCase {
  return { name, isolated: false, run: (harness) => runCase(harness, {}, run) }
}

/** Creates a case with its own engine. */
export function isolatedCase(name: string, run: Run, options: ContractEngineOptions = {}): ContractCase {
  return { name, isolated: true, run: (harness) => runCase(harness, options, run) }
}

/** Opens an engine for the case, and disposes of it in every outcome. */
async function runCase(harness: ContractHarness, options: ContractEngineOptions, run: Run): Promise<void> {
  const opened = await harness.open(options)
  try {
    await run({
      get engine() {
        return opened.engine
      },
      restart: () => opened.restart(),
      channel: (label) => `${label}-${randomUUID()}`,
    })
  } finally {
    await opened.dispose()
  }
}

export { pause }

/** The time that a case waits for an expected event, in ms. Only a failing case waits this long. */
export const PATIENCE_MS = 20_000

/** Collects the items that listeners get, and lets a case await them. */
export class Inbox<T> {
  readonly items: T[] = []
  readonly #waiting = new Set<() => void>()

  readonly push = (item: T): void => {
    this.items.push(item)
    for (const wake of this.#waiting) wake()
  }

  /** Resolves with all items so far as soon as there are at least `count`. */
  async take(count: number): Promise<readonly T[]> {
    await this.until((items) => items.length >= count, `${count} items`)
    return this.items
  }

  /** Resolves as soon as the items satisfy the condition. */
  async until(condition: (items: readonly T[]) => boolean, what: string): Promise<void> {
    if (condition(this.items)) return
    const fulfilled = Promise.withResolvers<void>()
    const wake = (): void => {
      if (condition(this.items)) fulfilled.resolve()
    }
    this.#waiting.add(wake)
    try {
      await within(fulfilled.promise, () => `${what}; ${this.items.length} came`)
    } finally {
      this.#waiting.delete(wake)
    }
  }
}

/** Returns the promise's outcome, or fails with a description of the awaited event. */
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

/** Repeats the assertion until it holds, for values without an event, such as counters. */
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

/** Asserts that the call fails with a Broker error of this code, and returns the error. */
export async function rejectsWith(code: BrokerErrorCode, call: Promise<unknown>): Promise<BrokerError> {
  let error: unknown
  try {
    await within(call, `a failure with ${code}`)
  } catch (thrown) {
    error = thrown
  }
  assert.ok(error !== undefined, `the call fails with ${code}`)
  if (!isBrokerError(error, code)) throw error
  assert.notEqual(error.message, '', 'an error has a text')
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
