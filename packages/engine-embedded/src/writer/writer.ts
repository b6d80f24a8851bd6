import { BrokerError, unavailable } from '@signalbox/broker-core/engine'
import { messageOf, startThread, tickWork } from '@signalbox/broker-core/internal'
import module from 'node:module'
import { dirname } from 'node:path'
import type { Worker } from 'node:worker_threads'

import type { CommitInfo } from '../options.ts'
import type { DamagedPlace } from '../store/damage.ts'
import type {
  ActivityOperation,
  Operation,
  OperationKind,
  OperationOf,
  OperationRefusal,
  Result,
  ResultOf,
} from './operations.ts'
import { isResultOf } from './operations.ts'
import type { GroupReply, WriterReply, WriterRequest, WriterSettings, WriterThreadData } from './thread-messages.ts'
import { movedBuffers, packOperations, unpackResults, withMovableBodies } from './thread-messages.ts'

// oxlint-disable unicorn/require-post-message-target-origin -- a worker thread has no origin

/** The maximum number of unanswered posts: the thread works on one while the next one waits. */
const MAX_POSTS = 2
/**
 * The maximum numbers of operations and message bytes posted and not answered; further operations wait here with their
 * callers.
 */
const MAX_OPERATIONS = 2_048
const MAX_BYTES = 32 * 1024 * 1024
/**
 * The maximum number of operations in one post. Their results are handled together, which must not block the event
 * loop.
 */
const POST_OPERATIONS = 512

/** The operations whose callers answer a client. Many end with one commit, and their answers share no long tick. */
const ANSWERED: ReadonlySet<OperationKind> = new Set(['send', 'append'])

interface WriterEvents {
  /** Called before the results of a group reach their callers. */
  group(reply: GroupReply): void
  /** Returns delivery counts to store with the next group. */
  activity(): ActivityOperation | undefined
  committed(commit: CommitInfo): void
  /** Called with true when the disk is full from the start or for an operation, and with false after a probe. */
  full(full: boolean): void
  /** Records unreadable data; returns the error for the operation that found it. */
  damaged(place: DamagedPlace, reason: string): BrokerError
  /**
   * Called after the connection was closed and every running operation rejected. `code` is SQLite's code, if there is
   * one.
   */
  failed(reason: string, code: string): void
}

interface Pending {
  operation: Operation
  /** The buffers of the operation that are moved to the thread. */
  moved: readonly ArrayBuffer[]
  /** The bytes that count in the limit of copies. */
  copiedBytes: number
  readonly bytes: number
  settle(result: Result): void
  fail(error: Error): void
}

/** The bytes of an operation from which its bodies are copied in turns, and moved to the thread. */
const LARGE_BYTES = 262_144

const NO_BUFFERS: readonly ArrayBuffer[] = []

function channelOf(operation: Operation): string {
  return 'channel' in operation ? operation.channel : ''
}

/** The main thread's side of the writer: collects operations, posts them in batches, and distributes the results. */
export class Writer {
  readonly #worker: Worker
  readonly #events: WriterEvents
  readonly ready: Promise<void>
  readonly ended: Promise<void>
  #waiting: Pending[] = []
  #posted: Pending[] = []
  #postedBytes = 0
  #posts: number[] = []
  #flushing = false
  /** The channels of operations whose bodies are being copied. Each promise resolves when the last of them was added. */
  readonly #copying = new Map<string, Promise<void>>()
  /** The bytes of operations with copied bodies that wait or were posted. */
  #copiedBytes = 0
  /** Resolves when there are fewer of them. */
  #room: PromiseWithResolvers<void> | undefined
  /** The reason why no more operations are accepted. */
  #refused: string | undefined
  #closing = false
  #ended = false
  /** SQLite's code of the failure that ended the writer, if there is one. */
  failure = ''

  constructor(settings: WriterSettings, events: WriterEvents) {
    this.#events = events
    this.#worker = startWriterThread(settings)
    const ready = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    this.ready = ready.promise
    this.ended = ended.promise
    const begin = (full: boolean): void => {
      if (full) events.full(true)
      ready.resolve()
    }
    const receive = (reply: WriterReply): void => {
      if (reply.kind === 'group') this.#settle(reply)
      else if (reply.kind === 'ready') begin(reply.full)
      else if (reply.kind === 'damaged') events.damaged(reply.place, reply.reason)
      else if (reply.kind === 'failed') this.#fail(`${reply.message} (${reply.code})`, reply.code)
      else leave()
    }
    const failed = (error: unknown): void => this.#fail(messageOf(error))
    const end = (): void => {
      this.#fail('the writer thread ended')
      ready.reject(unavailable(this.#refused ?? 'the writer thread ended'))
      ended.resolve()
    }
    /** The store is closed, and its thread free for another one. */
    const leave = (): void => {
      this.#worker.off('message', receive).off('error', failed).off('exit', end)
      end()
      returnWriterThread(this.#worker)
    }
    this.#worker.on('message', receive).on('error', failed).on('exit', end)
    ready.promise.catch(() => {})
  }

  /**
   * Submits one operation to the thread. `apply` runs as soon as the operation is durable, before any later event is
   * handled; its return value resolves the promise, for {@link ANSWERED} operations in one of the next ticks.
   * @throws BrokerError ENGINE_UNAVAILABLE, QUEUE_FULL, CONFLICT
   */
  submit<K extends OperationKind, T>(
    kind: K,
    operation: OperationOf<K>,
    bytes: number,
    apply: (result: ResultOf<K>) => T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#refused !== undefined) {
        reject(unavailable(this.#refused))
        return
      }
      const pending: Pending = {
        operation,
        moved: NO_BUFFERS,
        copiedBytes: 0,
        bytes,
        settle: (result) => {
          if (!isResultOf(kind, result)) {
            reject(unavailable(`the writer answered ${result.kind} to ${kind}`))
            return
          }
          try {
            const value = apply(result)
            if (ANSWERED.has(kind)) tickWork.soon(() => resolve(value))
            else resolve(value)
          } catch (error) {
            reject(error)
          }
        },
        fail: reject,
      }
      if (bytes < LARGE_BYTES && (this.#copying.size === 0 || !this.#copying.has(channelOf(operation)))) {
        this.#add(pending)
      } else this.#addInTurns(pending)
    })
  }

  /** Adds an operation after its bodies were copied, and after those of earlier operations on its channel. */
  #addInTurns(pending: Pending): void {
    const channel = channelOf(pending.operation)
    const before = this.#copying.get(channel)
    const copied = async (): Promise<void> => {
      await before
      if (pending.bytes >= LARGE_BYTES) await this.#copyBodies(pending)
      this.#add(pending)
    }
    const added = copied().catch((error: unknown) => {
      this.#leaveRoom(pending.copiedBytes)
      pending.fail(unavailable(messageOf(error)))
    })
    this.#copying.set(channel, added)
    void added.then(() => {
      if (this.#copying.get(channel) === added) this.#copying.delete(channel)
    })
  }

  /** Copies the bodies when all copies together are within {@link MAX_BYTES}: more would only wait in memory. */
  async #copyBodies(pending: Pending): Promise<void> {
    const { bytes } = pending
    while (this.#copiedBytes > 0 && this.#copiedBytes + bytes > MAX_BYTES && !this.#ended) {
      this.#room ??= Promise.withResolvers()
      await this.#room.promise
    }
    if (this.#ended) return
    this.#copiedBytes += bytes
    pending.copiedBytes = bytes
    const { operation, moved } = await withMovableBodies(pending.operation)
    pending.operation = operation
    pending.moved = moved
  }

  #leaveRoom(bytes: number): void {
    this.#copiedBytes -= bytes
    this.#room?.resolve()
    this.#room = undefined
  }

  #add(pending: Pending): void {
    if (this.#ended) {
      pending.fail(unavailable(this.#refused ?? 'the writer ended'))
      return
    }
    this.#waiting.push(pending)
    this.#schedule()
  }

  /**
   * Posts the collected operations at the end of this tick of the event loop, after the requests of all readable
   * sockets were handled. At the end of each callback instead, the first request would be a group alone, and would wake
   * the thread while the others wait to be read.
   */
  #schedule(): void {
    if (this.#flushing) return
    this.#flushing = true
    setImmediate(() => {
      this.#flushing = false
      this.#flush()
    })
  }

  #flush(): void {
    while (this.#waiting.length > 0 && this.#posts.length < MAX_POSTS && this.#posted.length < MAX_OPERATIONS) {
      let count = 0
      while (count < this.#waiting.length && count < POST_OPERATIONS) {
        const bytes = this.#waiting[count]?.bytes ?? 0
        if (this.#postedBytes > 0 && this.#postedBytes + bytes > MAX_BYTES) break
        this.#postedBytes += bytes
        count++
      }
      if (count === 0) return
      const batch = this.#waiting.length === count ? this.#waiting : this.#waiting.slice(0, count)
      this.#waiting = this.#waiting.length === count ? [] : this.#waiting.slice(count)
      this.#post(batch)
    }
  }

  #post(batch: Pending[]): void {
    const activity = this.#events.activity()
    if (activity) {
      batch.push({ operation: activity, moved: NO_BUFFERS, copiedBytes: 0, bytes: 0, settle: () => {}, fail: () => {} })
    }
    const request = packOperations(batch.map((pending) => pending.operation))
    if (this.#posted.length === 0) this.#worker.ref()
    this.#posted = this.#posted.length === 0 ? batch : [...this.#posted, ...batch]
    this.#posts.push(batch.length)
    const moved = movedBuffers(request)
    for (const pending of batch) if (pending.copiedBytes > 0) moved.push(...pending.moved)
    this.#worker.postMessage(request, moved)
  }

  #settle(reply: GroupReply): void {
    const results = unpackResults(reply.results)
    const count = results.length
    const group = this.#posted.slice(0, count)
    this.#posted = this.#posted.slice(count)
    for (let left = count; left > 0 && this.#posts.length > 0;) left -= this.#posts.shift() ?? left
    if (this.#posted.length === 0 && !this.#closing) this.#worker.unref()

    this.#events.group(reply)
    let bytes = 0
    let full = false
    let probed = false
    for (const [i, pending] of group.entries()) {
      bytes += pending.bytes
      if (pending.copiedBytes > 0) this.#leaveRoom(pending.copiedBytes)
      const result = results[i]
      if (result?.kind === 'refused') {
        if (result.code === 'DISK_FULL') full = true
        pending.fail(this.#errorOf(result))
      } else if (result) {
        if (result.kind === 'probe') probed = true
        pending.settle(result)
      }
    }
    this.#postedBytes -= bytes
    if (full || probed) this.#events.full(full)
    if (reply.committed > 0 && reply.wrote) {
      this.#events.committed({ operations: count, bytes, durationMs: reply.durationMs })
    }
    if (this.#waiting.length > 0) this.#schedule()
  }

  #errorOf(refusal: OperationRefusal): BrokerError {
    const { code, message, details, place } = refusal
    if (code === 'DISK_FULL') return unavailable('the disk is full')
    if (code === 'DAMAGED' && place) return this.#events.damaged(place, message)
    if (code === 'DAMAGED' || code === 'FAILED') return unavailable(message)
    return new BrokerError(code, message, details)
  }

  #fail(reason: string, code = ''): void {
    if (this.#ended) return
    this.#ended = true
    this.failure = code
    this.#refused ??= reason
    this.#worker.unref()
    const lost = [...this.#posted, ...this.#waiting]
    this.#posted = []
    this.#waiting = []
    for (const pending of lost) pending.fail(unavailable(reason))
    this.#leaveRoom(0)
    if (!this.#closing) this.#events.failed(reason, code)
  }

  /** Completes submitted operations, copies the WAL back and closes the store's files. Idempotent. */
  async close(): Promise<void> {
    if (!this.#ended && !this.#closing) {
      this.#closing = true
      this.#refused = 'it is closed'
      this.#worker.ref()
      if (this.#copying.size > 0) await Promise.all(this.#copying.values())
      // If the store failed meanwhile, the thread may already serve another one.
      if (!this.#ended) {
        if (this.#waiting.length > 0) this.#post(this.#waiting.splice(0))
        const request: WriterRequest = { close: true }
        this.#worker.postMessage(request)
      }
    }
    await this.ended
  }
}

// oxlint-disable unicorn/require-post-message-target-origin -- a worker thread has no origin

/** A thread that waits for its settings. */
let prepared: Worker | undefined

/**
 * Starts a writer thread for the next store to open. A thread needs about 100 ms to start, and no store. It does not
 * keep the process alive.
 */
export function prepareWriterThread(): void {
  if (!prepared) keep(newThread())
}

/**
 * Keeps a thread whose store was closed for the next store to open: a process that opens many, as tests do, starts one
 * thread. If one waits already, the thread ends.
 */
function returnWriterThread(thread: Worker): void {
  if (prepared) void thread.terminate()
  else keep(thread)
}

function keep(thread: Worker): void {
  thread.unref()
  // A thread that fails before its store is opened must not end the process; the next store starts another one.
  thread.once('error', forget)
  thread.once('exit', forget)
  prepared = thread
}

function forget(): void {
  prepared = undefined
}

/** Returns a running writer thread: the prepared one, or a new one. */
function startWriterThread(settings: WriterSettings): Worker {
  const thread = prepared ?? newThread()
  prepared = undefined
  thread.off('error', forget)
  thread.off('exit', forget)
  thread.ref()
  thread.postMessage(settings)
  return thread
}

function newThread(): Worker {
  // Not a named import: an older Node, without this function, would fail before supported-node.ts.
  const cache = module.getCompileCacheDir()
  const workerData: WriterThreadData = { compileCache: cache === undefined ? undefined : dirname(cache) }
  return startThread('writer-thread', import.meta.url, { name: 'signalbox-writer', workerData })
}
