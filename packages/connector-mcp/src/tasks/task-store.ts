import type { BrokerHandle } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import type { KeyedEntry } from '@signalbox/broker-core/internal'
import { keepSubscribed, KeyedLog } from '@signalbox/broker-core/internal'

/** A key of a {@link TaskStore} with its last value. */
export interface TaskEntry {
  readonly key: string
  /** The position of the entry, which grows with each entry of the store. */
  readonly sequence: number
  /** The description of the task, as JSON text; `undefined` if the key was deleted. */
  readonly head: string | undefined
  /** The task's result. */
  readonly body: Uint8Array
}

/** A value to write under a key. Without a `head` the key is deleted. */
export interface NewTaskEntry {
  readonly head?: string
  readonly body?: Uint8Array
}

/** Receives the entries of a {@link TaskStore}. */
export interface TaskSink {
  /** Called for each entry in the order of the store. Must not throw. */
  entry(entry: TaskEntry): void
  /** Called when entries were missed, before the last entries of all keys follow again. */
  restart(): void
  /** Called when all existing entries were delivered; later ones follow as they are written. */
  current(): void
  /** Called for each {@link TaskStore.announce} of any node, this one included. */
  alive(node: string): void
  /** Reports a failure that no caller sees. */
  failed(error: unknown): void
}

/**
 * A durable store of tasks, which keeps the last entry of each key. All nodes that serve the same clients use the same
 * store, so a task can be read from each of them.
 */
export interface TaskStore {
  /** `true` if other nodes may use the store at the same time. */
  readonly shared: boolean
  /**
   * Writes an entry if the last entry of the key has the sequence `expected`, or, for 0, if there is none. Resolves
   * with the sequence when the entry is durable and visible on every node.
   * @throws BrokerError CONFLICT, MESSAGE_TOO_LARGE, ENGINE_UNAVAILABLE
   */
  write(key: string, entry: NewTaskEntry, expected: number): Promise<number>
  /** Returns the last entry of a key, whichever node wrote it. @throws BrokerError ENGINE_UNAVAILABLE */
  last(key: string): Promise<TaskEntry | undefined>
  /** Announces to all nodes that follow the store that a node is alive. The message may be lost. */
  announce(node: string): Promise<void>
  /** Delivers the last entries of all keys, and then each new entry, until the signal is aborted. Never rejects. */
  follow(sink: TaskSink, signal: AbortSignal): Promise<void>
}

/** The compacted events store of the tasks. */
const CHANNEL = '_AGENTS_.tasks'

/** The events channel on which nodes announce that they are alive. */
const NODES = '_AGENTS_.tasks/nodes'

/**
 * Returns the store of tasks on the broker's own channel `_AGENTS_.tasks`.
 * @param system The handle for reserved channels
 * @param options.shared `true` if several nodes use the same storage
 */
export function brokerTaskStore(system: BrokerHandle, { shared }: { readonly shared: boolean }): TaskStore {
  return new BrokerTaskStore(system, shared)
}

class BrokerTaskStore implements TaskStore {
  readonly shared: boolean
  readonly #system: BrokerHandle
  readonly #log: KeyedLog

  constructor(system: BrokerHandle, shared: boolean) {
    this.#system = system
    this.shared = shared
    this.#log = new KeyedLog(system, CHANNEL)
  }

  async write(key: string, { head, body = new Uint8Array(0) }: NewTaskEntry, expected: number): Promise<number> {
    const content = head === undefined ? undefined : { body, metadata: head }
    const { sequence } = await this.#log.write(key, content, expected)
    return sequence
  }

  async last(key: string): Promise<TaskEntry | undefined> {
    const entry = await this.#log.last(key)
    return entry && taskEntry(entry)
  }

  async announce(node: string): Promise<void> {
    await this.#system.events.publish(NODES, { body: encodeText(node) })
  }

  async follow(sink: TaskSink, signal: AbortSignal): Promise<void> {
    const hearNodes = () =>
      this.#system.events.subscribe(NODES, { signal }, ({ body }) => sink.alive(decodeText(body) ?? ''))
    const hearing = keepSubscribed(hearNodes, { signal, failed: (error) => sink.failed(error) })
    const { closed } = this.#log.follow(
      {
        restart: () => sink.restart(),
        entry: (entry) => sink.entry(taskEntry(entry)),
        current: () => sink.current(),
        failed: (error) => sink.failed(error),
      },
      { signal },
    )
    await Promise.all([hearing, closed])
  }
}

function taskEntry({ key, sequence, metadata, body, tombstone }: KeyedEntry): TaskEntry {
  return { key, sequence, head: tombstone ? undefined : metadata, body }
}
