import type { MessageTable } from './message-rows.ts'
import { MESSAGE_TABLES } from './message-rows.ts'
import { CHANNELS_TABLE } from './stored-channel.ts'

/** "SBOX": marks the data file as a Signalbox store. */
export const APPLICATION_ID = 0x53424f58

/**
 * Twice SQLite's default: a group of messages of 1 KiB then costs a third less system time, and a single message costs
 * the same.
 */
export const PAGE_BYTES = 8_192

/** The version of a new store. Increase it with every change to the tables that older code cannot read. */
export const SCHEMA_VERSION = 1

/**
 * The version of a store with {@link QUEUE_GROUPS_TABLES}. Older code would not keep them up to date, so it must refuse
 * the store.
 */
export const GROUPS_VERSION = 2

/** The states of a queue in `grouped_queues`: its messages get their rows, all have them, or the rows are removed. */
export const GROUPS_BUILDING = 0
export const GROUPS_COMPLETE = 1
export const GROUPS_DROPPING = 2

/** Returns whether this code can read a store of this version. */
export function isReadableVersion(version: unknown): boolean {
  return version === SCHEMA_VERSION || version === GROUPS_VERSION
}

/**
 * The groups of deliverable and leased messages, only for the queues in `grouped_queues`. A store gets these tables, and
 * its second version, with its first queue with groups. A message without a group has the empty one.
 */
export const QUEUE_GROUPS_TABLES = `
CREATE TABLE queue_groups (
  channel INTEGER NOT NULL,
  grp TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  PRIMARY KEY (channel, grp, sequence)
) WITHOUT ROWID;

CREATE TABLE grouped_queues (
  channel INTEGER PRIMARY KEY,
  state INTEGER NOT NULL,
  indexed_to INTEGER NOT NULL
);
`

/**
 * The positions of durable groups: every entry up to `position` was handled. Stores from before this table get it with
 * their first durable group. Older code ignores it.
 */
export const GROUP_POSITIONS_TABLE = `
CREATE TABLE IF NOT EXISTS group_positions (
  channel INTEGER NOT NULL,
  name TEXT NOT NULL,
  position INTEGER NOT NULL,
  used_at INTEGER NOT NULL,
  PRIMARY KEY (channel, name)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS group_positions_age ON group_positions (used_at);
`

/**
 * The sends of the last two minutes that had a deduplication id, in the order in which they were stored. Stores from
 * before this table get it with their first such send. Older code ignores it.
 */
export const RECENT_SENDS_TABLE = `
CREATE TABLE recent_sends (
  key INTEGER PRIMARY KEY,
  channel INTEGER NOT NULL,
  deduplication_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  id TEXT NOT NULL,
  timestamp INTEGER NOT NULL
);
`

export const SCHEMA = `
${CHANNELS_TABLE}

-- Messages that are deliverable or leased; a delayed one comes here when it is due.
${messageTable('queue_messages')}
CREATE INDEX queue_messages_expiry ON queue_messages (expires_at) WHERE expires_at > 0;

${messageTable('delayed_messages')}
CREATE INDEX delayed_messages_due ON delayed_messages (due_at);
CREATE INDEX delayed_messages_expiry ON delayed_messages (expires_at) WHERE expires_at > 0;

${messageTable('log_entries')}
CREATE INDEX log_entries_tombstones ON log_entries (timestamp) WHERE tombstone = 1;

-- The last entry of each key.
CREATE TABLE log_keys (
  channel INTEGER NOT NULL,
  log_key TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  PRIMARY KEY (channel, log_key)
) WITHOUT ROWID;

${RECENT_SENDS_TABLE}
-- Sends with a deduplication id that is kept for more than two minutes.
CREATE TABLE deduplication (
  channel INTEGER NOT NULL,
  deduplication_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  id TEXT NOT NULL,
  timestamp INTEGER NOT NULL,
  PRIMARY KEY (channel, deduplication_id)
) WITHOUT ROWID;
CREATE INDEX deduplication_age ON deduplication (timestamp);

${GROUP_POSITIONS_TABLE}
-- Deleted channels whose rows are still to be removed, piece by piece.
CREATE TABLE garbage (
  channel INTEGER PRIMARY KEY
);

-- Written to find out whether the disk takes writes again.
CREATE TABLE probe (
  id INTEGER PRIMARY KEY,
  filling BLOB NOT NULL
);
`

function messageTable(name: MessageTable): string {
  const columns = Object.entries(MESSAGE_TABLES[name]).map(([column, declaration]) => `${column} ${declaration}`)
  return `CREATE TABLE ${name} (\n  ${['key INTEGER PRIMARY KEY', ...columns].join(',\n  ')}\n);`
}
