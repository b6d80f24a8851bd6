import type { StoredTask, TaskRecord } from './task-record.ts'

/** A task as the index keeps it: without the result, and without the requests. */
export interface IndexedTask extends Pick<TaskRecord, 'account' | 'status' | 'expiresMs'> {
  readonly id: string
  readonly sequence: number
  readonly node: string | undefined
}

/** The stored tasks that this node knows, and their number for each account. */
export class TaskIndex {
  readonly #tasks = new Map<string, IndexedTask>()
  readonly #byAccount = new Map<string, number>()

  get size(): number {
    return this.#tasks.size
  }

  /** Returns the number of stored tasks of an account. */
  countOf(account: string): number {
    return this.#byAccount.get(account) ?? 0
  }

  get(id: string): IndexedTask | undefined {
    return this.#tasks.get(id)
  }

  /** Returns a copy, so that tasks can be removed during an iteration. */
  tasks(): readonly IndexedTask[] {
    return [...this.#tasks.values()]
  }

  /** Adds or replaces a task. Returns `false` if this entry of it, or a later one, is known. */
  set(id: string, sequence: number, { account, status, expiresMs, node }: TaskRecord): boolean {
    const known = this.#tasks.get(id)
    if (known !== undefined && known.sequence >= sequence) return false
    if (known === undefined) this.#byAccount.set(account, this.countOf(account) + 1)
    this.#tasks.set(id, { id, sequence, account, status, expiresMs, node })
    return true
  }

  delete(id: string): void {
    const task = this.#tasks.get(id)
    if (task === undefined) return
    this.#tasks.delete(id)
    const left = this.countOf(task.account) - 1
    if (left > 0) this.#byAccount.set(task.account, left)
    else this.#byAccount.delete(task.account)
  }

  clear(): void {
    this.#tasks.clear()
    this.#byAccount.clear()
  }
}

/** The changes that are kept of one task. */
const MAX_CHANGES = 20

/** A change of a task. */
export interface TaskChange {
  /** In ms since the epoch. */
  readonly at: number
  readonly event: string
  readonly detail?: string
}

/** A task as operators see it. Times are in ms since the epoch. */
export interface TaskOverview {
  readonly id: string
  readonly tool: string
  /** The ClientID of the caller. */
  readonly owner: string
  readonly status: TaskRecord['status']
  readonly statusMessage?: string | undefined
  readonly createdAt: number
  readonly updatedAt: number
  readonly expiresAt: number
  /** The changes that this node has seen, oldest first. */
  readonly events: readonly TaskChange[]
}

/** The stored tasks with the changes that this node has seen. The store keeps only the last state of a task. */
export class TaskHistory {
  readonly #tasks = new Map<string, TaskOverview>()

  list(): readonly TaskOverview[] {
    return [...this.#tasks.values()]
  }

  get(id: string): TaskOverview | undefined {
    return this.#tasks.get(id)
  }

  add({ id, record }: StoredTask): void {
    const { tool, principal, status, statusMessage, createdMs, updatedMs, expiresMs } = record
    const before = this.#tasks.get(id)?.events ?? [{ at: createdMs, event: 'created' }]
    const message = statusMessage === undefined ? {} : { detail: statusMessage }
    const change: TaskChange = { at: updatedMs, event: status, ...message }
    this.#tasks.set(id, {
      id,
      tool,
      owner: principal,
      status,
      statusMessage,
      createdAt: createdMs,
      updatedAt: updatedMs,
      expiresAt: expiresMs,
      events: [...before, change].slice(-MAX_CHANGES),
    })
  }

  delete(id: string): void {
    this.#tasks.delete(id)
  }

  clear(): void {
    this.#tasks.clear()
  }
}
