import { randomBytes, randomUUID } from 'node:crypto'

import type { Caller } from '@signalbox/broker-core'
import { MultiMap } from '@signalbox/broker-core/internal'
import type { JsonObject } from '@signalbox/http-kit'

import type { ResolvedTaskOptions } from './options.ts'
import { OwnedTask } from './owned-task.ts'
import { TaskHistory, TaskIndex } from './task-index.ts'
import type { StoredTask, TaskRecord } from './task-record.ts'
import { encodeRecord, isExpired, isOver, NO_RESULT, readTask, restingRecord } from './task-record.ts'
import type { TaskEntry } from './task-store.ts'
import { TaskUpkeep } from './task-upkeep.ts'

/** A task that is not stored yet. */
export interface NewTask {
  readonly caller: Caller
  readonly tool: string
  /** `true` if the client accepts questions for its user. */
  readonly asks: boolean
  /** The tool's own notes. */
  readonly state: JsonObject
}

/** Called with each new state of a task; with `undefined` when the task was removed. */
type TaskListener = (task: StoredTask | undefined) => void

/** The tasks of all nodes, as one node reads and writes them. */
export class Tasks {
  readonly options: ResolvedTaskOptions
  /** The id of this node, in the tasks whose calls it runs. */
  readonly node = randomUUID()
  readonly failed: (error: unknown) => void
  readonly history = new TaskHistory()
  readonly #index = new TaskIndex()
  /**
   * The calls of this node by the id of their task. A task has several while its next state is being written: the call
   * that asked for input has not returned, and requests that want to continue it compete.
   */
  readonly #running = new MultiMap<string, TaskWork>()
  /** The accounts of the tasks that are being created, by id. */
  readonly #creating = new Map<string, string>()
  readonly #listeners = new MultiMap<string, TaskListener>()
  readonly #upkeep: TaskUpkeep
  readonly #ended = new AbortController()
  #following: Promise<void> | undefined
  #current = false

  /** @param failed Receives failures that no caller sees */
  constructor(options: ResolvedTaskOptions, failed: (error: unknown) => void) {
    this.options = options
    this.failed = failed
    this.#upkeep = new TaskUpkeep(this, this.#index)
  }

  /** Starts to follow the store. Calls become tasks when its entries have been read. */
  open(): void {
    const sink = {
      entry: (entry: TaskEntry) => this.#read(entry),
      restart: () => {
        this.#current = false
        this.#index.clear()
        this.history.clear()
      },
      current: () => {
        this.#current = true
      },
      alive: (node: string) => this.#upkeep.alive(node),
      failed: this.failed,
    }
    this.#following = this.options.store.follow(sink, this.#ended.signal)
    this.#upkeep.open()
  }

  /** `true` while this node knows all tasks. */
  get current(): boolean {
    return this.#current && !this.closed
  }

  get closed(): boolean {
    return this.#ended.signal.aborted
  }

  /** Returns `true` if this node runs the call of a task. */
  runs(id: string): boolean {
    return this.#running.has(id)
  }

  /**
   * Stores a new task of a call on this node. Resolves when the task is durable and every node can read it, with
   * `undefined` if it could not be stored or a limit is reached.
   */
  async create({ caller, tool, asks, state }: NewTask, work: TaskWork): Promise<OwnedTask | undefined> {
    const account = caller.account ?? caller.clientId
    if (!this.current || !this.#hasRoomFor(caller, account)) return undefined
    const id = randomBytes(24).toString('base64url')
    const now = Date.now()
    const record: TaskRecord = {
      principal: caller.clientId,
      account,
      tool,
      status: 'working',
      createdMs: now,
      updatedMs: now,
      expiresMs: now + this.options.ttlMs,
      node: this.node,
      asks,
      rounds: 0,
      state,
    }
    this.#creating.set(id, account)
    this.#running.add(id, work)
    try {
      return this.#owned(await this.write({ id, sequence: 0, record, result: NO_RESULT }), work)
    } catch (error) {
      // If the entry was stored in spite of the error, upkeep finds a task without a call.
      this.#running.delete(id, work)
      this.failed(error)
      return undefined
    } finally {
      this.#creating.delete(id)
    }
  }

  #hasRoomFor(caller: Caller, account: string): boolean {
    const { maxTasks, maxTasksOf, limited } = this.options
    if (maxTasks > 0 && this.#index.size + this.#creating.size >= maxTasks) {
      limited('tasks', account)
      return false
    }
    const most = maxTasksOf(caller)
    if (most === 0) return true
    let count = this.#index.countOf(account)
    for (const other of this.#creating.values()) if (other === account) count++
    if (count < most) return true
    limited('caller_tasks', account)
    return false
  }

  /**
   * Takes over a task whose call continues on this node.
   * @throws BrokerError CONFLICT if another node wrote first, ENGINE_UNAVAILABLE
   */
  async start({ id, sequence, record }: StoredTask, work: TaskWork): Promise<OwnedTask> {
    const working = { ...restingRecord(record, { status: 'working' }, this.options.ttlMs), node: this.node }
    this.#running.add(id, work)
    try {
      return this.#owned(await this.write({ id, sequence, record: working, result: NO_RESULT }), work)
    } catch (error) {
      this.#running.delete(id, work)
      throw error
    }
  }

  #owned(task: StoredTask, work: TaskWork): OwnedTask {
    return new OwnedTask(this, task, () => this.#running.delete(task.id, work))
  }

  /** Returns a task that is not expired. @throws BrokerError ENGINE_UNAVAILABLE */
  async find(id: string): Promise<StoredTask | undefined> {
    const entry = await this.options.store.last(id)
    const task = entry && this.#decode(entry)
    return task === undefined || isExpired(task.record, Date.now()) ? undefined : task
  }

  /**
   * Writes the next state of a task, unless another write came first.
   * @param next The new state, with the sequence of the last one
   * @throws BrokerError CONFLICT, MESSAGE_TOO_LARGE, ENGINE_UNAVAILABLE
   */
  async write(next: StoredTask): Promise<StoredTask> {
    const { id, record, result } = next
    const sequence = await this.options.store.write(id, { head: encodeRecord(record), body: result }, next.sequence)
    const task = { id, sequence, record, result }
    this.#apply(task)
    return task
  }

  /** Removes a task, unless another write came first. @throws BrokerError CONFLICT, ENGINE_UNAVAILABLE */
  async remove(id: string, sequence: number): Promise<void> {
    await this.options.store.write(id, {}, sequence)
    this.#forget(id)
  }

  /** Calls the listener with each new state of a task. The returned function ends that. */
  watch(id: string, listener: TaskListener): () => void {
    this.#listeners.add(id, listener)
    return () => this.#listeners.delete(id, listener)
  }

  /** Ends the work of this node on tasks. Call it after the calls have ended. Idempotent. */
  async close(): Promise<void> {
    this.#ended.abort()
    this.#upkeep.close()
    await this.#following
  }

  #read(entry: TaskEntry): void {
    const task = this.#decode(entry)
    if (task === undefined) this.#forget(entry.key)
    else this.#apply(task)
  }

  /** An unreadable entry counts as no task. */
  #decode(entry: TaskEntry): StoredTask | undefined {
    try {
      return readTask(entry)
    } catch (error) {
      this.failed(error)
      return undefined
    }
  }

  #apply(task: StoredTask): void {
    const { id, sequence, record } = task
    if (!this.#index.set(id, sequence, record)) return
    this.history.add(task)
    if (isOver(record) || (record.node !== undefined && record.node !== this.node)) this.#abandon(id)
    this.#notify(id, task)
  }

  #forget(id: string): void {
    this.#index.delete(id)
    this.history.delete(id)
    this.#abandon(id)
    this.#notify(id, undefined)
  }

  /** Ends the calls of a task. */
  #abandon(id: string): void {
    for (const work of this.#running.get(id)) work.abandon()
  }

  #notify(id: string, task: StoredTask | undefined): void {
    for (const listener of this.#listeners.get(id)) listener(task)
  }
}

/** A call on this node that has a task. */
export interface TaskWork {
  /** Ends the call: its task is over, or another node has it. */
  abandon(): void
}
