import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { QueueDelivery } from '@signalbox/broker-core'
import type { EventsStoreAppend, QueueSend, ReceiveOptions } from '@signalbox/broker-core/engine'
import { decodeText, encodeText } from '@signalbox/broker-core'
import type { EmbeddedEngine, EmbeddedEngineOptions } from '@signalbox/engine-embedded'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'

/** A folder of the test's own, removed at its end. */
export class Folder implements AsyncDisposable {
  readonly path: string

  private constructor(path: string) {
    this.path = path
  }

  static async make(): Promise<Folder> {
    return new Folder(await mkdtemp(join(tmpdir(), 'signalbox-engine-')))
  }

  file(name: string): string {
    return join(this.path, name)
  }

  open(options: Omit<EmbeddedEngineOptions, 'path'> = {}): Promise<EmbeddedEngine> {
    return openEmbeddedEngine({ ...options, path: this.path })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true })
  }
}

export const CLIENT = 'client'

export function queued(text: string, options: Partial<QueueSend> = {}): QueueSend {
  return {
    id: randomUUID(),
    clientId: 'producer',
    body: encodeText(text),
    metadata: '',
    tags: {},
    delayMs: 0,
    expirationMs: 0,
    maxReceiveCount: 0,
    deadLetterQueue: '',
    ...options,
  }
}

export function storedEvent(text: string, options: Partial<EventsStoreAppend> = {}): EventsStoreAppend {
  return { id: randomUUID(), clientId: 'producer', body: encodeText(text), metadata: '', tags: {}, ...options }
}

export function receive(
  engine: EmbeddedEngine,
  queue: string,
  options: Partial<ReceiveOptions> = {},
): Promise<readonly QueueDelivery[]> {
  return engine.queues.receive(queue, { maxMessages: 100, waitMs: 0, leaseMs: 60_000, clientId: CLIENT, ...options })
}

export function textsOf(deliveries: readonly QueueDelivery[]): (string | undefined)[] {
  return deliveries.map(({ message }) => decodeText(message.body))
}
