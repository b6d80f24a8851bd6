/** "SBOX": marks the data file as a Signalbox store. */
export const APPLICATION_ID = 0x53424f58

/**
 * Twice SQLite's default: a group of messages of 1 KiB then costs a third less system time, and a single message costs
 * the same.
 */
export const PAGE_BYTES = 8_192

/** The version of the schema. Increase it with every change to the tables that older code cannot read. */
export const SCHEMA_VERSION = 1

/**
 * Keys of rows are one integer, `(channel << SEQUENCE_BITS) | sequence`. A channel's rows are therefore adjacent in one
 * B-tree in the order of their sequences, appends need no second index, and reading from a sequence is one seek. 23
 * bits remain for the channel: 8 million channels at a time.
 */
const SEQUENCE_BITS = 40
export const MAX_CHANNEL_ID = 2 ** 23 - 1

/** The SQL for a key, `(channel << 40) | sequence`; bind the two numbers in this order. */
export const KEY = `((? << ${SEQUENCE_BITS}) | ?)`
/** The SQL for the sequence of a key. */
export const SEQUENCE = `(key & ${2 ** SEQUENCE_BITS - 1})`
/** The SQL for the channel of a key. */
export const CHANNEL = `(key >> ${SEQUENCE_BITS})`
/** The highest sequence of a key, and the end of a channel's range. */
export const LAST_SEQUENCE = 2 ** SEQUENCE_BITS - 1

const MESSAGE_COLUMNS = `
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  client_id TEXT NOT NULL,
  timestamp INTEGER NOT NULL,
  size INTEGER NOT NULL,
  metadata TEXT NOT NULL,
  tags TEXT NOT NULL`

const QUEUE_COLUMNS = `${MESSAGE_COLUMNS},
  expires_at INTEGER NOT NULL,
  receive_count INTEGER NOT NULL,
  max_receive_count INTEGER NOT NULL,
  dead_letter_queue TEXT NOT NULL`

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

export const SCHEMA = `
CREATE TABLE channels (
  id INTEGER PRIMARY KEY,
  type TEXT NOT NULL,
  name TEXT NOT NULL,
  last_sequence INTEGER NOT NULL,
  first_sequence INTEGER NOT NULL,
  last_timestamp INTEGER NOT NULL,
  entries INTEGER NOT NULL,
  delayed INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  incoming INTEGER NOT NULL,
  incoming_bytes INTEGER NOT NULL,
  outgoing INTEGER NOT NULL,
  outgoing_bytes INTEGER NOT NULL,
  dead_lettered INTEGER NOT NULL,
  expired INTEGER NOT NULL,
  last_activity INTEGER NOT NULL,
  compacted INTEGER NOT NULL,
  max_age_ms INTEGER,
  max_bytes INTEGER,
  UNIQUE (type, name)
);

-- Messages that are deliverable or leased; a delayed one comes here when it is due.
CREATE TABLE queue_messages (${QUEUE_COLUMNS},
  body BLOB NOT NULL
);
CREATE INDEX queue_messages_expiry ON queue_messages (expires_at) WHERE expires_at > 0;

CREATE TABLE delayed_messages (${QUEUE_COLUMNS},
  due_at INTEGER NOT NULL,
  body BLOB NOT NULL
);
CREATE INDEX delayed_messages_due ON delayed_messages (due_at);
CREATE INDEX delayed_messages_expiry ON delayed_messages (expires_at) WHERE expires_at > 0;

CREATE TABLE log_entries (${MESSAGE_COLUMNS},
  log_key TEXT,
  tombstone INTEGER NOT NULL,
  body BLOB NOT NULL
);
CREATE INDEX log_entries_tombstones ON log_entries (timestamp) WHERE tombstone = 1;

-- The last entry of each key.
CREATE TABLE log_keys (
  channel INTEGER NOT NULL,
  log_key TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  PRIMARY KEY (channel, log_key)
) WITHOUT ROWID;

-- Sends of the last two minutes that carried a deduplication id.
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
