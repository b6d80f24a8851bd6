import { SettingsTable } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

import { hasOptions } from '../store/stored-channel.ts'
import type { ChannelTable } from './channel-table.ts'
import { Deduplication } from './deduplication.ts'
import { EventsStoreOperations, GroupPositions } from './events-store-operations.ts'
import { Maintenance } from './maintenance.ts'
import type {
  ActivityOperation,
  ActivityOperationResult,
  CreateChannelOperation,
  CreateChannelOperationResult,
  DeleteChannelOperation,
  DeleteChannelOperationResult,
  Operation,
  Result,
} from './operations.ts'
import { QueueGroups } from './queue-groups.ts'
import { QueueOperations } from './queue-operations.ts'
import type { SkippedChannels } from './refusals.ts'
import type { WriterSettings } from './thread-messages.ts'

/** Runs one operation in a transaction that the caller begins and commits. */
export class OperationRunner {
  readonly #queues: QueueOperations
  readonly #eventsStore: EventsStoreOperations
  readonly #queueGroups: QueueGroups
  readonly #groups: GroupPositions
  readonly #channels: ChannelOperations
  readonly #maintenance: Maintenance
  readonly #deduplication: Deduplication
  readonly #channelTable: ChannelTable
  readonly #settings = new SettingsTable()

  constructor(database: Database.Database, channels: ChannelTable, settings: WriterSettings, skipped: SkippedChannels) {
    this.#settings.replace(settings.channelSettings)
    const deduplication = new Deduplication(database, this.#settings)
    this.#deduplication = deduplication
    this.#channelTable = channels
    this.#queueGroups = new QueueGroups(database, channels)
    this.#queues = new QueueOperations(database, channels, deduplication, {
      groups: this.#queueGroups,
      limits: settings,
      settings: this.#settings,
      skipped,
    })
    this.#eventsStore = new EventsStoreOperations(database, channels, deduplication, settings, this.#settings, skipped)
    this.#groups = new GroupPositions(database, channels, settings)
    this.#channels = new ChannelOperations(channels, this.#eventsStore)
    const [eventsStore, groups, queueGroups] = [this.#eventsStore, this.#groups, this.#queueGroups]
    const parts = { eventsStore, groups, queueGroups, deduplication }
    this.#maintenance = new Maintenance(database, channels, parts, skipped)
  }

  /** Reads the data that operations need in memory. Call it before the first one. @throws DamagedError */
  load(): void {
    this.#channelTable.reserveTo(this.#deduplication.load())
  }

  /** Returns whether the operation has nothing to write, so that a full disk need not refuse it: every start repeats it. */
  isDone(operation: Operation): boolean {
    if (operation.kind === 'groupQueue') return this.#queueGroups.isDone(operation)
    return operation.kind === 'createChannel' && this.#channels.exists(operation)
  }

  /** Runs the operation. @throws RefusedError if it is not allowed; it has written nothing then */
  run(operation: Operation): Result {
    if (operation.kind !== 'send' && operation.kind !== 'settle') this.#queues.flush()
    switch (operation.kind) {
      case 'send':
        return this.#queues.send(operation)
      case 'append':
        return this.#eventsStore.append(operation)
      case 'settle':
        return this.#queues.settle(operation)
      case 'expire':
        return this.#queues.expire(operation)
      case 'release':
        return this.#queues.release(operation)
      case 'promote':
        return this.#queues.promote(operation)
      case 'expireDelayed':
        return this.#queues.expireDelayed(operation)
      case 'purge':
        return this.#queues.purge(operation)
      case 'groupQueue':
        return this.#queueGroups.step(operation)
      case 'joinGroup':
        return this.#groups.join(operation)
      case 'storePositions':
        return this.#groups.store(operation)
      case 'createChannel':
        return this.#channels.create(operation)
      case 'deleteChannel':
        return this.#channels.delete(operation)
      case 'activity':
        return this.#channels.activity(operation)
      case 'useSettings':
        this.#settings.replace(operation.entries)
        return { kind: 'useSettings' }
      case 'sweep':
        return this.#maintenance.sweep(operation)
      default:
        return this.#maintenance.probe()
    }
  }

  /** Returns, once, that the store has a new version, which must reach the data file. */
  takeNewVersion(): boolean {
    return this.#queueGroups.takeNewVersion()
  }

  /** Writes the collected rows of the operations. Call it before the commit. */
  flush(): void {
    this.#queues.flush()
    this.#deduplication.flush()
  }

  /** Drops the collected rows of the operations. Call it when their transaction is rolled back. */
  discard(): void {
    this.#queues.discard()
    this.#deduplication.discard()
    this.#queueGroups.discard()
    this.#groups.discard()
  }
}

/** The writer's operations that create, change and delete channels. */
class ChannelOperations {
  readonly #channels: ChannelTable
  readonly #eventsStore: EventsStoreOperations

  constructor(channels: ChannelTable, eventsStore: EventsStoreOperations) {
    this.#channels = channels
    this.#eventsStore = eventsStore
  }

  /** Returns whether the channel exists with these options: there is nothing to write. */
  exists({ type, channel: name, options }: CreateChannelOperation): boolean {
    const channel = this.#channels.get(type, name)
    return channel !== undefined && hasOptions(channel, options)
  }

  create(operation: CreateChannelOperation): CreateChannelOperationResult {
    if (this.exists(operation)) return { kind: 'createChannel', created: false }
    const { type, channel: name, options } = operation
    const created = this.#channels.get(type, name) === undefined
    const channel = this.#channels.editOrCreate(type, name)
    Object.assign(channel, options)
    if (!created) this.#eventsStore.applyOptions(channel)
    return { kind: 'createChannel', created }
  }

  delete({ type, channel: name }: DeleteChannelOperation): DeleteChannelOperationResult {
    const channel = this.#channels.get(type, name)
    if (channel) this.#channels.remove(channel)
    return { kind: 'deleteChannel', deleted: channel !== undefined }
  }

  activity({ channels }: ActivityOperation): ActivityOperationResult {
    for (const { type, name, id, outgoing, outgoingBytes, lastActivity } of channels) {
      const channel = this.#channels.get(type, name)
      if (channel?.id !== id) continue
      this.#channels.edit(channel)
      channel.outgoing = outgoing
      channel.outgoingBytes = outgoingBytes
      channel.lastActivity = Math.max(channel.lastActivity, lastActivity)
    }
    return { kind: 'activity' }
  }
}
