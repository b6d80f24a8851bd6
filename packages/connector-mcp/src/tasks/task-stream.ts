import type { SseStream } from '@signalbox/http-kit'

import { taskNotification } from '../wire/subscriptions.ts'
import type { StoredTask } from './task-record.ts'
import { isOver } from './task-record.ts'
import type { Tasks } from './tasks.ts'
import { detailedMembers } from './task-text.ts'

/** The most tasks of one `subscriptions/listen`. */
export const MAX_WATCHED = 100

/**
 * The notifications about some tasks on one event stream: the state of each, then each change. A reader that is slow
 * misses states between, but not the last one.
 */
export class TaskStream {
  readonly #tasks: Tasks
  readonly #id: string
  readonly #onOver: () => void
  /** The tasks that can still change, with the functions that end the watch. */
  readonly #watched = new Map<string, () => void>()
  /** The last states that are not sent yet. */
  readonly #waiting = new Map<string, StoredTask>()
  /** The sequence of the last state of each task, sent or waiting. */
  readonly #known = new Map<string, number>()
  #stream: SseStream | undefined
  #sending = false

  /**
   * Starts to watch tasks, before their states are read, so that no change is missed between.
   * @param id The source text of the id of the `subscriptions/listen`
   * @param onOver Called when the stream is open and has nothing more to send
   */
  constructor(tasks: Tasks, taskIds: readonly string[], id: string, onOver: () => void) {
    this.#tasks = tasks
    this.#id = id
    this.#onOver = onOver
    for (const taskId of taskIds) {
      const unwatch = tasks.watch(taskId, (task) => this.#changed(taskId, task))
      this.#watched.set(taskId, unwatch)
    }
  }

  /** Sends the states of these tasks, and then each change. Ends the watch of the others. */
  open(stream: SseStream, tasks: readonly StoredTask[]): void {
    const own = new Set(tasks.map(({ id }) => id))
    for (const taskId of this.#watched.keys()) if (!own.has(taskId)) this.#unwatch(taskId)
    for (const taskId of this.#waiting.keys()) if (!own.has(taskId)) this.#waiting.delete(taskId)
    stream.onEnd(() => this.close())
    for (const task of tasks) this.#changed(task.id, task)
    this.#stream = stream
    void this.#send(stream)
  }

  close(): void {
    for (const id of this.#watched.keys()) this.#unwatch(id)
    this.#waiting.clear()
  }

  #changed(id: string, task: StoredTask | undefined): void {
    if (task === undefined || isOver(task.record)) this.#unwatch(id)
    if (task !== undefined && task.sequence > (this.#known.get(id) ?? 0)) {
      this.#known.set(id, task.sequence)
      this.#waiting.set(id, task)
    }
    if (this.#stream !== undefined && !this.#sending) void this.#send(this.#stream)
  }

  async #send(stream: SseStream): Promise<void> {
    this.#sending = true
    try {
      for (const [id, task] of this.#waiting) {
        this.#waiting.delete(id)
        const members = detailedMembers(task, this.#tasks.options.pollIntervalMs)
        stream.write({ event: 'message', data: taskNotification(this.#id, members) })
        // Each waits for the one before: results are large, and a stream that is far behind is closed.
        await stream.drained()
      }
    } catch (error) {
      this.#tasks.failed(error)
    } finally {
      this.#sending = false
    }
    if (this.#watched.size === 0 && stream.open) this.#onOver()
  }

  #unwatch(id: string): void {
    this.#watched.get(id)?.()
    this.#watched.delete(id)
  }
}
