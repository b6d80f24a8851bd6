import type { StoredType } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

import { MAX_CHANNEL_ID } from '../store/message-rows.ts'
import type { StoredChannel } from '../store/stored-channel.ts'
import { channelValues, INSERT_CHANNEL, loadChannels, newChannel, UPDATE_CHANNEL } from '../store/stored-channel.ts'
import { touching } from './refusals.ts'

/**
 * Every stored channel with its counters, in the writer's memory. Operations change the objects; {@link flush} writes
 * the changed ones once per group, and {@link rollback} restores the state before the group.
 */
export class ChannelTable {
  readonly #byName: Record<StoredType, Map<string, StoredChannel>> = { queues: new Map(), events_store: new Map() }
  readonly #ids = new Set<number>()
  /**
   * The channels changed in this transaction, with their state before; undefined for a channel that it created. Each
   * transaction gets a new map; see {@link OrderedSet}.
   */
  #before = new Map<StoredChannel, StoredChannel | undefined>()
  readonly #removed: StoredChannel[] = []
  /** The id that the last channel got. */
  #lastId = 0

  readonly #insert
  readonly #update
  readonly #delete
  readonly #addGarbage

  constructor(database: Database.Database) {
    for (const channel of loadChannels(database)) {
      this.#byName[channel.type].set(channel.name, channel)
      this.#ids.add(channel.id)
    }
    for (const { channel } of database.prepare<[], { channel: number }>('SELECT channel FROM garbage').all()) {
      this.#ids.add(channel)
    }
    for (const id of this.#ids) this.reserveTo(id)
    this.#insert = database.prepare(INSERT_CHANNEL)
    this.#update = database.prepare(UPDATE_CHANNEL)
    this.#delete = database.prepare<[number]>('DELETE FROM channels WHERE id = ?')
    this.#addGarbage = database.prepare<[number]>('INSERT INTO garbage (channel) VALUES (?)')
  }

  get(type: StoredType, name: string): StoredChannel | undefined {
    return this.#byName[type].get(name)
  }

  all(type: StoredType): IterableIterator<StoredChannel> {
    return this.#byName[type].values()
  }

  /** Iterates over the channels of both types. */
  *stored(): Generator<StoredChannel> {
    yield* this.all('queues')
    yield* this.all('events_store')
  }

  /** Records a channel's state before a change, and returns the channel. */
  edit(channel: StoredChannel): StoredChannel {
    if (!this.#before.has(channel)) this.#before.set(channel, { ...channel })
    return channel
  }

  /** Returns a channel to change; creates it if necessary. */
  editOrCreate(type: StoredType, name: string): StoredChannel {
    const existing = this.get(type, name)
    if (existing) return this.edit(existing)
    const channel = newChannel(this.#freeId(), type, name)
    this.#byName[type].set(name, channel)
    this.#ids.add(channel.id)
    this.#before.set(channel, undefined)
    this.#insert.run(channel.id, type, name, ...channelValues(channel))
    return channel
  }

  /** Removes the channel. Its rows are removed later, in steps. */
  remove(channel: StoredChannel): void {
    this.edit(channel)
    this.#byName[channel.type].delete(channel.name)
    this.#removed.push(channel)
    this.#delete.run(channel.id)
    this.#addGarbage.run(channel.id)
  }

  /** Releases the id of a deleted channel after all its rows were removed. */
  release(id: number): void {
    this.#ids.delete(id)
  }

  /** Gives new channels only higher ids: rows of deleted channels have this one. */
  reserveTo(id: number): void {
    this.#lastId = Math.max(this.#lastId, id)
  }

  /** Returns the next free id. After the highest one it begins again: an id stays free for as long as possible. */
  #freeId(): number {
    for (let tried = 0; tried < MAX_CHANNEL_ID; tried++) {
      this.#lastId = (this.#lastId % MAX_CHANNEL_ID) + 1
      if (!this.#ids.has(this.#lastId)) return this.#lastId
    }
    throw new Error('every channel id is in use')
  }

  /** Writes the changed channels. Call it before the commit. */
  flush(): void {
    for (const [channel, before] of this.#before) {
      if (this.#removed.includes(channel)) continue
      const values = channelValues(channel)
      // Writing an unchanged row would count as a change, in a commit without anything to sync.
      if (before && channelValues(before).every((value, i) => value === values[i])) continue
      touching(channel, () => this.#update.run(...values, channel.id))
    }
  }

  /** Drops the previous states, and returns the changes of the group. */
  commit(): { changed: StoredChannel[]; removed: StoredChannel[] } {
    const removed = this.#removed.splice(0)
    const changed = [...this.#before.keys()].filter((channel) => !removed.includes(channel))
    this.#before = new Map()
    return { changed, removed }
  }

  rollback(): void {
    for (const channel of this.#removed.splice(0)) this.#byName[channel.type].set(channel.name, channel)
    for (const [channel, before] of this.#before) {
      if (before) {
        Object.assign(channel, before)
      } else {
        if (this.get(channel.type, channel.name) === channel) this.#byName[channel.type].delete(channel.name)
        this.#ids.delete(channel.id)
      }
    }
    this.#before.clear()
  }
}
