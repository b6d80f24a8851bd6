import type { ChannelTable } from './channel-table.ts'
import type { EventsStoreOperations } from './events-store-operations.ts'
import type {
  ActivityOperation,
  ActivityOperationResult,
  CreateChannelOperation,
  CreateChannelOperationResult,
  DeleteChannelOperation,
  DeleteChannelOperationResult,
} from './operations.ts'

/** The writer's operations that create, change and delete channels. */
export class ChannelOperations {
  readonly #channels: ChannelTable
  readonly #eventsStore: EventsStoreOperations

  constructor(channels: ChannelTable, eventsStore: EventsStoreOperations) {
    this.#channels = channels
    this.#eventsStore = eventsStore
  }

  /** Returns whether the channel exists with these options: there is nothing to write. */
  exists({ type, channel: name, options }: CreateChannelOperation): boolean {
    const channel = this.#channels.get(type, name)
    const { compacted, maxAgeMs, maxBytes } = options
    return (
      channel !== undefined &&
      (compacted === undefined || compacted === channel.compacted) &&
      (maxAgeMs === undefined || maxAgeMs === channel.maxAgeMs) &&
      (maxBytes === undefined || maxBytes === channel.maxBytes)
    )
  }

  create(operation: CreateChannelOperation): CreateChannelOperationResult {
    if (this.exists(operation)) return { kind: 'createChannel', created: false }
    const { type, channel: name, options } = operation
    const { compacted, maxAgeMs, maxBytes } = options
    const created = this.#channels.get(type, name) === undefined
    const channel = this.#channels.editOrCreate(type, name)
    if (compacted !== undefined) channel.compacted = compacted
    if (maxAgeMs !== undefined) channel.maxAgeMs = maxAgeMs
    if (maxBytes !== undefined) channel.maxBytes = maxBytes
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
