import { randomUUID } from 'node:crypto'

import type { Engine } from '../engine.ts'

/** Limits that a case asks its engine to be opened with; what is left out is the engine's own default. */
export interface ContractEngineOptions {
  readonly maxMessageBytes?: number
  /** Over all types, the broker's own channels not counted (C4). */
  readonly maxChannels?: number
  /** For every queue (C4); 0 is no limit. */
  readonly queueMaxMessages?: number
  /** For every queue (C4); 0 is no limit. */
  readonly queueMaxBytes?: number
  /** Retention of every events store, in milliseconds; 0 keeps all. */
  readonly eventsStoreMaxAgeMs?: number
  /** Retention of every events store; 0 keeps all. */
  readonly eventsStoreMaxBytes?: number
}

/** An engine under test. */
export interface ContractEngine {
  /** The running engine; after {@link restart} another one. */
  readonly engine: Engine
  /** Closes the engine and opens it again over the same data, with the same options. */
  restart(): Promise<void>
  /** Closes the engine, if it is not closed yet, and removes its data. */
  dispose(): Promise<void>
}

/** What whoever writes an engine provides. */
export interface ContractHarness {
  /**
   * A fresh, empty engine. A case that is not `isolated` asks for no options, and may be given one that others use at
   * the same time: all its names are its own, and it neither restarts nor closes the engine.
   */
  open(options?: ContractEngineOptions): Promise<ContractEngine>
}

/** One behavior that every engine shows. Run it with any test runner: it resolves, or rejects with an AssertionError. */
export interface ContractCase {
  readonly name: string
  /** It needs an engine of its own: it sets limits, restarts or closes it, or looks at the whole of it. */
  readonly isolated: boolean
  run(harness: ContractHarness): Promise<void>
}

/** What a case works with. */
export interface CaseContext {
  readonly engine: Engine
  readonly restart: () => Promise<void>
  /** A channel name that nothing else uses. */
  readonly channel: (label: string) => string
}

type Run = (context: CaseContext) => Promise<void>

/** A case that can share its engine. */
export function contractCase(name: string, run: Run): ContractCase {
  return { name, isolated: false, run: (harness) => runCase(harness, {}, run) }
}

/** A case that has its engine for itself. */
export function isolatedCase(name: string, run: Run, options: ContractEngineOptions = {}): ContractCase {
  return { name, isolated: true, run: (harness) => runCase(harness, options, run) }
}

/** Opens an engine for the case, and disposes of it however the case ends. */
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
