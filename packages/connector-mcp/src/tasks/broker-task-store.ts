import { setTimeout as delay } from 'node:timers/promises'

import type { BrokerHandle, StoredEvent, Subscription } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import { createCompactedLog, readWholeLog } from '@signalbox/broker-core/internal'

import type { NewTaskEntry, TaskEntry, TaskSink, TaskStore } from './task-store.ts'

/** The compacted events store of the tasks. */
const CHANNEL = '_AGENTS_.tasks'

/** The events channel on which nodes announce that they are alive. */
const NODES = '_AGENTS_.tasks/nodes'

/** The pause before a subscription that ended or failed is made again, in ms. */
const RETRY_MS = 1_000

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

  constructor(system: BrokerHandle, shared: boolean) {
    this.#system = system
    this.shared = shared
  }

  async write(key: string, { head, body = NOTHING }: NewTaskEntry, expected: number): Promise<number> {
    const value = head === undefined ? { body: NOTHING, tombstone: true } : { body, metadata: head }
    const written = await this.#system.eventsStore.publish(CHANNEL, { ...value, key, expectLastOfKey: expected })
    return written.sequence
  }

  async last(key: string): Promise<TaskEntry | undefined> {
    const event = await this.#system.eventsStore.getLast(CHANNEL, key)
    return event && entryOf(event)
  }

  async announce(node: string): Promise<void> {
    await this.#system.events.publish(NODES, { body: encodeText(node) })
  }

  async follow(sink: TaskSink, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await using nodes = await this.#system.events.subscribe(NODES, { signal }, ({ body }) =>
          sink.alive(decodeText(body) ?? ''),
        )
        const entries = await this.#begin(sink, signal)
        const error = await Promise.race([entries.closed, nodes.closed])
        await entries.close()
        if (error !== undefined && !signal.aborted) sink.failed(error)
      } catch (error) {
        if (!signal.aborted) sink.failed(error)
      }
      await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  /** Reads the whole history, because missed entries may have been compacted away, then subscribes. */
  async #begin(sink: TaskSink, signal: AbortSignal): Promise<Subscription> {
    await createCompactedLog(this.#system, CHANNEL)
    sink.restart()
    const next = await readWholeLog(this.#system, CHANNEL, (event) => deliver(event, sink), signal)
    const start = { from: 'sequence', sequence: next } as const
    const subscription = await this.#system.eventsStore.subscribe(CHANNEL, start, { signal }, (event) =>
      deliver(event, sink),
    )
    sink.current()
    return subscription
  }
}

function deliver(event: StoredEvent, sink: TaskSink): void {
  const entry = entryOf(event)
  if (entry !== undefined) sink.entry(entry)
}

function entryOf({ key, sequence, metadata, body, tombstone }: StoredEvent): TaskEntry | undefined {
  return key === undefined ? undefined : { key, sequence, head: tombstone ? undefined : metadata, body }
}
