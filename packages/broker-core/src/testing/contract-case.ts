import { randomUUID } from 'node:crypto'

import type { EngineOptions } from '../engine/engine-options.ts'
import type { Engine } from '../engine/engine.ts'

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
