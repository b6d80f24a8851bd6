import { isBrokerError } from '@signalbox/broker-core'
import { Nodes } from '@signalbox/broker-core/internal'
import { JSON_RPC_CODES } from '@signalbox/http-kit'

import type { ResolvedTaskOptions } from './options.ts'
import type { IndexedTask, TaskIndex } from './task-index.ts'
import type { StoredTask } from './task-record.ts'
import { NO_RESULT, restingRecord } from './task-record.ts'

/** The interval of {@link TaskUpkeep}, in ms. */
const SWEEP_MS = 1_000

/** The most tasks that are written in one interval, so that a sweep does not delay the calls of clients. */
const WRITES = 100

const STOPPED =
  'the node that ran the call stopped before it had an answer; the call may have run: check that before you repeat it'

/** The tasks, as upkeep uses them. */
export interface KeptTasks {
  readonly options: ResolvedTaskOptions
  readonly node: string
  /** `true` while this node knows all tasks. */
  readonly current: boolean
  readonly closed: boolean
  readonly failed: (error: unknown) => void
  /** Returns `true` if this node runs the call of a task. */
  runs(id: string): boolean
  find(id: string): Promise<StoredTask | undefined>
  write(next: StoredTask): Promise<StoredTask>
  remove(id: string, sequence: number): Promise<void>
}

/** Removes expired tasks, and ends the tasks of nodes that stopped. Every node tries; the store accepts one. */
export class TaskUpkeep {
  readonly #tasks: KeptTasks
  readonly #index: TaskIndex
  readonly #nodes: Nodes
  #timer: NodeJS.Timeout | undefined
  #announcedAt = Number.NEGATIVE_INFINITY
  #sweeping = false

  constructor(tasks: KeptTasks, index: TaskIndex) {
    this.#tasks = tasks
    this.#index = index
    const { leaseMs, store } = tasks.options
    this.#nodes = new Nodes(tasks.node, { leaseMs, shared: store.shared })
  }

  open(): void {
    this.#timer = setInterval(() => void this.#sweep(), Math.min(SWEEP_MS, this.#tasks.options.leaseMs / 4))
    this.#timer.unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Records that a node has announced itself. */
  alive(node: string): void {
    if (node === this.#tasks.node) this.#nodes.renewed(performance.now())
    else this.#nodes.heard(node)
  }

  /** Never rejects. */
  async #sweep(): Promise<void> {
    if (this.#sweeping || this.#index.size === 0 || !this.#tasks.current) return
    this.#sweeping = true
    try {
      const tasks = this.#index.tasks()
      const nodes = new Set(tasks.flatMap(({ status, node }) => (status === 'working' && node ? [node] : [])))
      this.#nodes.retain(nodes)
      if (this.#tasks.options.store.shared && nodes.size > 0) await this.#announce()
      const now = Date.now()
      const due = tasks.filter((task) => (task.status === 'working' ? this.#isOrphan(task) : task.expiresMs <= now))
      await Promise.all(due.slice(0, WRITES).map((task) => this.#end(task)))
    } catch (error) {
      this.#tasks.failed(error)
    } finally {
      this.#sweeping = false
    }
  }

  async #announce(): Promise<void> {
    const now = performance.now()
    if (now - this.#announcedAt < this.#tasks.options.leaseMs / 4) return
    this.#announcedAt = now
    await this.#tasks.options.store.announce(this.#tasks.node)
  }

  /** Returns `true` if no node runs the call of a task. */
  #isOrphan({ id, node }: IndexedTask): boolean {
    if (node === undefined) return true
    if (node === this.#tasks.node) return !this.#tasks.runs(id)
    return this.#nodes.isLost(node)
  }

  async #end({ id, sequence, status }: IndexedTask): Promise<void> {
    try {
      if (status === 'working') await this.#fail(id, sequence)
      else await this.#tasks.remove(id, sequence)
    } catch (error) {
      if (!isBrokerError(error, 'CONFLICT') && !this.#tasks.closed) this.#tasks.failed(error)
    }
  }

  async #fail(id: string, sequence: number): Promise<void> {
    const task = await this.#tasks.find(id)
    if (task === undefined || task.sequence !== sequence) return
    const error = { code: JSON_RPC_CODES.INTERNAL_ERROR, message: STOPPED }
    const change = { status: 'failed', statusMessage: STOPPED, error } as const
    const record = restingRecord(task.record, change, this.#tasks.options.ttlMs)
    await this.#tasks.write({ id, sequence, record, result: NO_RESULT })
  }
}
