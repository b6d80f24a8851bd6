/** A pause of a queue, by an operator or by a receiver. */
export interface QueuePause {
  /** The end, in ms since the epoch. {@link PAUSED_UNTIL_RESUMED} has no end. */
  readonly until: number
  /** Empty if none was given. */
  readonly reason: string
  /** The ClientID of the operator or receiver. */
  readonly changedBy: string
}

/** The end of a pause that lasts until an operator resumes the queue: the last second of the year 9999. */
export const PAUSED_UNTIL_RESUMED = Date.parse('9999-12-31T23:59:59Z')

/** Stores pauses for all nodes. */
export interface PauseStore {
  /**
   * Stores a pause, unless the queue has one that ends later. Resolves when the pause is in force on this node.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  extend(queue: string, pause: QueuePause): Promise<void>
}

/** The number of pauses from which those that have ended are removed. */
const MANY = 1_000

/** The pauses of queues that are in force on this node. A store adds those of other nodes, and keeps them. */
export class QueuePauses {
  readonly #pauses = new Map<string, QueuePause>()
  readonly #listeners = new Set<(queue: string) => void>()
  #store: PauseStore | undefined
  #sweepAt = MANY

  /** `false` if no queue has a pause, so that calls can skip the search. */
  get active(): boolean {
    return this.#pauses.size > 0
  }

  /** Returns the pause of a queue that has not ended. */
  of(queue: string): QueuePause | undefined {
    const pause = this.#pauses.get(queue)
    if (pause === undefined || pause.until > Date.now()) return pause
    this.#pauses.delete(queue)
    return undefined
  }

  /** Sets or removes the pause of a queue on this node. */
  set(queue: string, pause: QueuePause | undefined): void {
    if (pause === undefined) this.#pauses.delete(queue)
    else this.#pauses.set(queue, pause)
    if (this.#pauses.size >= this.#sweepAt) {
      for (const name of this.#pauses.keys()) this.of(name)
      this.#sweepAt = Math.max(MANY, 2 * this.#pauses.size)
    }
    for (const listener of this.#listeners) listener(queue)
  }

  /** Removes the pauses of the other queues on this node. */
  retain(queues: ReadonlySet<string>): void {
    for (const queue of this.#pauses.keys()) if (!queues.has(queue)) this.set(queue, undefined)
  }

  /** Pauses a queue, unless it has a pause that ends later. Without a store the pause ends with the process. */
  async extend(queue: string, pause: QueuePause): Promise<void> {
    if ((this.of(queue)?.until ?? 0) >= pause.until) return
    if (this.#store === undefined) this.set(queue, pause)
    else await this.#store.extend(queue, pause)
  }

  /** Keeps the pauses of receivers in a store from now on. */
  useStore(store: PauseStore): void {
    this.#store = store
  }

  /** Calls back with the queue of each change. */
  onChange(listener: (queue: string) => void): void {
    this.#listeners.add(listener)
  }
}
