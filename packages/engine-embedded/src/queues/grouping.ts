import type { SettingsTable } from '@signalbox/broker-core/engine'

import type { ChannelRegistry, LiveChannel } from '../channel-registry.ts'
import type { Store } from '../store/store.ts'
import type { QueueReader } from './queue-reader.ts'

/** The number of messages that one step gives their groups: about 10 ms of work, after which other operations run. */
const STEP = 2_000
/** The pause after a step that failed, in ms. */
const RETRY_MS = 500

/**
 * Gives queues groups on disk when their settings have groups, and removes them afterwards. Until each message of a
 * queue has its group, the queue delivers nothing.
 */
export class Grouping {
  readonly #store: Store
  readonly #reader: QueueReader
  readonly #registry: ChannelRegistry
  readonly #settings: SettingsTable
  readonly #changed: (queue: string) => void
  /** The ids of queues with groups on disk, or with a part of them: `true` if each message has its group. */
  #onDisk = new Map<number, boolean>()
  /** The ids of the queues with complete groups, by name. */
  readonly #complete = new Map<string, number>()
  readonly #working = new Set<number>()
  readonly #retries = new Set<NodeJS.Timeout>()
  #stopListening: (() => void) | undefined
  #closed = false

  /** @param changed Called for a queue that has waited for its groups, and after each change of settings */
  constructor(
    store: Store,
    reader: QueueReader,
    registry: ChannelRegistry,
    settings: SettingsTable,
    changed: (queue: string) => void,
  ) {
    this.#store = store
    this.#reader = reader
    this.#registry = registry
    this.#settings = settings
    this.#changed = changed
  }

  /** Reads the queues with groups. Call it after the channels were read. */
  start(): void {
    this.#onDisk = this.#reader.groupedQueues()
    // Not applied yet: at a start the settings are still unknown, and groups would be removed that are wanted.
    this.#stopListening = this.#settings.onChange(() => this.#apply())
  }

  /** Returns whether each message of the queue has its group on disk. */
  has({ name, id }: LiveChannel): boolean {
    return this.#complete.get(name) === id
  }

  #apply(): void {
    if (!this.#settings.active && this.#onDisk.size === 0) return
    for (const channel of this.#registry.all('queues')) {
      this.#adjust(channel)
      this.#changed(channel.name)
    }
  }

  /** Gives a new queue its groups. */
  created(name: string): void {
    const channel = this.#settings.active ? this.#registry.get('queues', name) : undefined
    if (channel) this.#adjust(channel)
  }

  /** Handles a queue that was deleted. */
  forget(name: string): void {
    this.#onDisk.delete(this.#complete.get(name) ?? 0)
    this.#complete.delete(name)
  }

  #isWanted(name: string): boolean {
    return this.#settings.of('queues', name).groups !== undefined
  }

  #adjust({ name, id }: LiveChannel): void {
    if (!this.#isWanted(name)) this.#complete.delete(name)
    else if (this.#onDisk.get(id) === true) this.#complete.set(name, id)
    if (!this.#isDone(name, id)) void this.#work(name, id)
  }

  #isDone(name: string, id: number): boolean {
    return this.#isWanted(name) ? this.#complete.get(name) === id : !this.#onDisk.has(id)
  }

  /** Runs steps until the disk agrees with the settings, which may change meanwhile. */
  async #work(name: string, id: number): Promise<void> {
    if (this.#working.has(id)) return
    this.#working.add(id)
    try {
      while (!this.#closed && this.#registry.get('queues', name)?.id === id && !this.#isDone(name, id)) {
        await this.#step(name, id)
      }
    } catch {
      if (!this.#store.damage.has('queues', name)) this.#retry(name, id)
    } finally {
      this.#working.delete(id)
    }
  }

  #step(name: string, id: number): Promise<void> {
    const grouped = this.#isWanted(name)
    if (!grouped) this.#onDisk.set(id, false)
    const operation = { kind: 'groupQueue', channel: name, channelId: id, grouped, limit: STEP } as const
    return this.#store.submit('groupQueue', operation, 0, ({ more }) => {
      if (this.#registry.get('queues', name)?.id !== id) return
      if (more || grouped) this.#onDisk.set(id, !more)
      else this.#onDisk.delete(id)
      if (more || !grouped || !this.#isWanted(name)) return
      this.#complete.set(name, id)
      this.#changed(name)
    })
  }

  #retry(name: string, id: number): void {
    const timer = setTimeout(() => {
      this.#retries.delete(timer)
      void this.#work(name, id)
    }, RETRY_MS).unref()
    this.#retries.add(timer)
  }

  close(): void {
    this.#closed = true
    this.#stopListening?.()
    for (const timer of this.#retries) clearTimeout(timer)
  }
}
