import type { OwnedTask } from './owned-task.ts'
import type { NewTask, Tasks, TaskWork } from './tasks.ts'

/** The pause before a call tries again to become a task while this node reads the stored tasks, in ms. */
const READING_MS = 100

/** A waiting call that becomes a task when it has waited for too long. */
export class LongCall {
  readonly #tasks: Tasks
  readonly #task: NewTask
  readonly #work: TaskWork
  readonly #onCreated: (task: OwnedTask) => void
  #timer: NodeJS.Timeout | undefined
  #created: Promise<OwnedTask | undefined> | undefined

  /** @param onCreated Called when the task is stored, before its outcome can be known */
  constructor(tasks: Tasks, task: NewTask, work: TaskWork, onCreated: (task: OwnedTask) => void) {
    this.#tasks = tasks
    this.#task = task
    this.#work = work
    this.#onCreated = onCreated
    this.#createAfter(tasks.options.afterMs)
  }

  /** A node that has just started, or lost the store for a while, creates tasks only when it has read the stored ones. */
  #createAfter(ms: number): void {
    this.#timer = setTimeout(() => {
      const { current, closed } = this.#tasks
      if (current || closed) void this.#create()
      else this.#createAfter(READING_MS)
    }, ms)
    this.#timer.unref()
  }

  /**
   * Ends the wait. Returns the task of the call, if it has one or is becoming one; the promise resolves with
   * `undefined` if the task could not be stored.
   * @param asks `true` if the call needs input, so that it must be a task
   */
  end(asks: boolean): Promise<OwnedTask | undefined> | undefined {
    clearTimeout(this.#timer)
    return asks ? this.#create() : this.#created
  }

  #create(): Promise<OwnedTask | undefined> {
    this.#created ??= this.#tasks
      .create(this.#task, this.#work)
      .then((task) => {
        if (task !== undefined) this.#onCreated(task)
        return task
      })
      .catch((error: unknown) => {
        this.#tasks.failed(error)
        return undefined
      })
    return this.#created
  }
}
