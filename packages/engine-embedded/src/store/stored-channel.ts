import type { ChannelOptions, StoredType } from '@signalbox/broker-core/engine'
import type Database from 'better-sqlite3'

/** A channel's row with its counters. Every change updates them, so that no scan ever counts rows. */
export interface StoredChannel {
  id: number
  type: StoredType
  name: string
  lastSequence: number
  /** Events stores: the sequence of the first stored entry; 0 when empty. */
  firstSequence: number
  /** Events stores: the timestamp of the last entry. No later entry has a lower one. */
  lastTimestamp: number
  /** The number of rows without delayed ones; leased messages count. */
  entries: number
  delayed: number
  /** The message bytes of all rows, including delayed ones. */
  bytes: number
  incoming: number
  incomingBytes: number
  outgoing: number
  outgoingBytes: number
  deadLettered: number
  expired: number
  lastActivity: number
  compacted: boolean
  /** The channel's maximum age in ms; null for the engine's setting. */
  maxAgeMs: number | null
  maxBytes: number | null
}

/** A member that the store keeps in addition to the id, the type and the name. */
type Member = Exclude<keyof StoredChannel, 'id' | 'type' | 'name'>

/** The columns of `channels` after the first three, by their members. Every other list of columns derives from this one. */
const COLUMNS = {
  lastSequence: 'last_sequence INTEGER NOT NULL',
  firstSequence: 'first_sequence INTEGER NOT NULL',
  lastTimestamp: 'last_timestamp INTEGER NOT NULL',
  entries: 'entries INTEGER NOT NULL',
  delayed: 'delayed INTEGER NOT NULL',
  bytes: 'bytes INTEGER NOT NULL',
  incoming: 'incoming INTEGER NOT NULL',
  incomingBytes: 'incoming_bytes INTEGER NOT NULL',
  outgoing: 'outgoing INTEGER NOT NULL',
  outgoingBytes: 'outgoing_bytes INTEGER NOT NULL',
  deadLettered: 'dead_lettered INTEGER NOT NULL',
  expired: 'expired INTEGER NOT NULL',
  lastActivity: 'last_activity INTEGER NOT NULL',
  compacted: 'compacted INTEGER NOT NULL',
  maxAgeMs: 'max_age_ms INTEGER',
  maxBytes: 'max_bytes INTEGER',
} as const satisfies Readonly<Record<Member, string>>

const DECLARATIONS: readonly string[] = Object.values(COLUMNS)
const NAMES = DECLARATIONS.map((declaration) => declaration.replace(/ .*/, ''))
const MEMBERS = Object.keys(COLUMNS).filter((member): member is Member => member in COLUMNS)

export const CHANNELS_TABLE = `CREATE TABLE channels (
  id INTEGER PRIMARY KEY,
  type TEXT NOT NULL,
  name TEXT NOT NULL,
  ${DECLARATIONS.join(',\n  ')},
  UNIQUE (type, name)
);`

/** The columns in the order of {@link channelFrom}: the id, the type, the name, and the others. */
export const CHANNEL_COLUMNS = ['id', 'type', 'name', ...NAMES].join(', ')

/** Inserts a channel. Its parameters are the id, the type, the name, and {@link channelValues}. */
export const INSERT_CHANNEL = `INSERT INTO channels (${CHANNEL_COLUMNS}) VALUES (?, ?, ?, ${NAMES.map(() => '?').join(', ')})`

/** Updates a channel. Its parameters are {@link channelValues} and the id. */
export const UPDATE_CHANNEL = `UPDATE channels SET ${NAMES.map((name) => `${name} = ?`).join(', ')} WHERE id = ?`

/** Returns the values in the order of {@link COLUMNS}. A literal: every commit calls this for each changed channel. */
export function channelValues(channel: StoredChannel): (number | null)[] {
  return [
    channel.lastSequence,
    channel.firstSequence,
    channel.lastTimestamp,
    channel.entries,
    channel.delayed,
    channel.bytes,
    channel.incoming,
    channel.incomingBytes,
    channel.outgoing,
    channel.outgoingBytes,
    channel.deadLettered,
    channel.expired,
    channel.lastActivity,
    channel.compacted ? 1 : 0,
    channel.maxAgeMs,
    channel.maxBytes,
  ]
}

/** Returns a channel with the values of its columns. Garbage in a damaged row becomes the value of a new channel. */
export function channelFrom(id: number, type: StoredType, name: string, values: readonly unknown[]): StoredChannel {
  const channel = newChannel(id, type, name)
  const read = MEMBERS.map((member, i): readonly [Member, boolean | number | null] => {
    const [initial, value] = [channel[member], values[i]]
    if (typeof initial === 'boolean') return [member, value === 1]
    return [member, typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : initial]
  })
  return Object.assign(channel, Object.fromEntries(read))
}

/** The options that a channel of each type has. */
const OPTIONS: Readonly<Record<StoredType, readonly (keyof ChannelOptions & Member)[]>> = {
  queues: [],
  events_store: ['compacted', 'maxAgeMs', 'maxBytes'],
}

/** Returns the given options that channels of the type have. */
export function optionsOf(type: StoredType, options: ChannelOptions): ChannelOptions {
  const given = OPTIONS[type].filter((option) => options[option] !== undefined)
  return Object.fromEntries(given.map((option) => [option, options[option]]))
}

/** Returns whether a channel has the options. */
export function hasOptions(channel: StoredChannel, options: ChannelOptions): boolean {
  return OPTIONS[channel.type].every((option) => options[option] === undefined || options[option] === channel[option])
}

interface ChannelRow extends Omit<StoredChannel, 'compacted'> {
  compacted: number
}

const SELECT_CHANNELS = `SELECT id, type, name, ${MEMBERS.map((member, i) => `${NAMES[i]} AS ${member}`).join(', ')} FROM channels`

export function loadChannels(database: Database.Database): StoredChannel[] {
  const channels: StoredChannel[] = []
  for (const row of database.prepare<[], ChannelRow>(SELECT_CHANNELS).all()) {
    channels.push({ ...row, compacted: row.compacted === 1 })
  }
  return channels
}

export function newChannel(id: number, type: StoredType, name: string): StoredChannel {
  return {
    id,
    type,
    name,
    lastSequence: 0,
    firstSequence: 0,
    lastTimestamp: 0,
    entries: 0,
    delayed: 0,
    bytes: 0,
    incoming: 0,
    incomingBytes: 0,
    outgoing: 0,
    outgoingBytes: 0,
    deadLettered: 0,
    expired: 0,
    lastActivity: 0,
    compacted: false,
    maxAgeMs: null,
    maxBytes: null,
  }
}
