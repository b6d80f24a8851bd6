import type { Caller } from '@signalbox/broker-core'
import { checkParts } from '@signalbox/broker-core/internal'
import type { OptionRules } from '@signalbox/http-kit/internal'
import { resolveOptions } from '@signalbox/http-kit/internal'

import type { TaskStore } from './task-store.ts'

/** Options of the tasks of revision 2026-07-28. */
export interface TaskOptions {
  /** The store of the tasks, such as `brokerTaskStore(system, { shared: false })`. */
  readonly store: TaskStore
  /** Time without an answer after which a call becomes a task, in ms. @default 3000 */
  readonly afterMs?: number
  /** Time for which a task is kept after its creation and after its end, in ms; above 0. @default 3600000 */
  readonly ttlMs?: number
  /** The most stored tasks of all callers; 0 means no limit. At the limit, calls do not become tasks. @default 10000 */
  readonly maxTasks?: number
  /** Returns the most stored tasks of a caller; 0 means no limit. @default 100 for each caller */
  readonly maxTasksOf?: (caller: Caller) => number
  /** The largest result of a task, in bytes; a call with a larger one fails. @default 1048576 */
  readonly maxResultBytes?: number
  /** The interval at which clients should ask for the status, in ms. @default 1000 */
  readonly pollIntervalMs?: number
  /** Time without a sign of life after which another node counts as stopped, in ms. @default 15000 */
  readonly leaseMs?: number
  /** Called when a call did not become a task because of a limit. @default none */
  readonly limited?: (limit: 'tasks' | 'caller_tasks', account: string) => void
}

export type ResolvedTaskOptions = Required<TaskOptions>

const DEFAULT_PER_CALLER = 100

const OPTIONS = {
  store: { type: 'object' },
  afterMs: { type: 'number', default: 3_000 },
  ttlMs: { type: 'number', default: 3_600_000 },
  maxTasks: { type: 'number', default: 10_000 },
  maxTasksOf: { type: 'function', default: () => DEFAULT_PER_CALLER },
  maxResultBytes: { type: 'number', default: 1_048_576 },
  pollIntervalMs: { type: 'number', default: 1_000 },
  leaseMs: { type: 'number', default: 15_000 },
  limited: { type: 'function', default: () => {} },
} as const satisfies OptionRules<TaskOptions>

/** @throws TypeError for an unknown option, another type, or no store */
export function resolveTaskOptions(options: TaskOptions): ResolvedTaskOptions {
  checkParts('mcpConnector tasks', options, ['store'])
  return { ...resolveOptions('mcpConnector tasks', options, OPTIONS), store: options.store }
}
