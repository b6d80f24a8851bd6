import type { BrokerHandle } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import type { KeyedEntry } from '@signalbox/broker-core/internal'
import { keepSubscribed, KeyedLog } from '@signalbox/broker-core/internal'

import type { NewTaskEntry, TaskEntry, TaskSink, TaskStore } from './task-store.ts'

/** The compacted events store of the tasks. */
const CHANNEL = '_AGENTS_.tasks'

/** The events channel on which nodes announce that they are alive. */
const NODES = '_AGENTS_.tasks/nodes'

const NOTHING = new Uint8Array(0)

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

  async write(key: string, { head, body = NOTHING }: NewTaskEntry, expected: number): Promise<number> {
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
