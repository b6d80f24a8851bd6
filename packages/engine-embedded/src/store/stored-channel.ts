import type { StoredType } from '@signalbox/broker-core/engine'
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

interface ChannelRow extends Omit<StoredChannel, 'compacted'> {
  compacted: number
}

const SELECT_CHANNELS = `
SELECT id, type, name, last_sequence AS lastSequence, first_sequence AS firstSequence, last_timestamp AS lastTimestamp,
  entries, delayed, bytes, incoming, incoming_bytes AS incomingBytes, outgoing, outgoing_bytes AS outgoingBytes,
  dead_lettered AS deadLettered, expired, last_activity AS lastActivity, compacted, max_age_ms AS maxAgeMs,
  max_bytes AS maxBytes
FROM channels`

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
