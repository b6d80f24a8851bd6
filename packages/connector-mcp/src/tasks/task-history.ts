import type { StoredTask, TaskRecord } from './task-record.ts'

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
  readonly statusMessage?: string
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
      ...(statusMessage === undefined ? {} : { statusMessage }),
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
