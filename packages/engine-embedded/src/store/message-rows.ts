import type {
  EventsStoreAppend,
  OutgoingMessage,
  QueueMessage,
  QueueSend,
  StoredEvent,
  Tags,
} from '@signalbox/broker-core/engine'
import { messageSize, toQueueMessage, toStoredEvent } from '@signalbox/broker-core/engine'
import { parseJsonText } from '@signalbox/broker-core/internal'

import { DamagedRowError } from './sqlite.ts'

// The rows of messages: their tables, what a new row contains, and how a row is read. Only this file and
// `packed-rows.ts` know the columns of a message.

// ── Keys ──

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

// ── Tables ──

type Declaration = 'TEXT NOT NULL' | 'TEXT' | 'INTEGER NOT NULL' | 'BLOB NOT NULL'

const MESSAGE = {
  id: 'TEXT NOT NULL',
  client_id: 'TEXT NOT NULL',
  timestamp: 'INTEGER NOT NULL',
  size: 'INTEGER NOT NULL',
  metadata: 'TEXT NOT NULL',
  tags: 'TEXT NOT NULL',
} as const

const QUEUED = {
  ...MESSAGE,
  expires_at: 'INTEGER NOT NULL',
  receive_count: 'INTEGER NOT NULL',
  max_receive_count: 'INTEGER NOT NULL',
  dead_letter_queue: 'TEXT NOT NULL',
} as const

/** The tables of messages, with their columns after `key`. */
export const MESSAGE_TABLES = {
  queue_messages: { ...QUEUED, body: 'BLOB NOT NULL' },
  delayed_messages: { ...QUEUED, due_at: 'INTEGER NOT NULL', body: 'BLOB NOT NULL' },
  log_entries: { ...MESSAGE, log_key: 'TEXT', tombstone: 'INTEGER NOT NULL', body: 'BLOB NOT NULL' },
} as const satisfies Record<string, Readonly<Record<string, Declaration>>>

export type MessageTable = keyof typeof MESSAGE_TABLES

// ── New messages of queues ──

/** A new message of a queue. Times are in ms since the epoch. */
export interface QueueRow {
  readonly id: string
  readonly clientId: string
  readonly timestamp: number
  /** The bytes of body, metadata and tags. */
  readonly size: number
  readonly metadata: string
  /** The tags as JSON; empty if there is none. */
  readonly tags: string
  /** 0 means never. */
  readonly expiresAt: number
  readonly maxReceiveCount: number
  readonly deadLetterQueue: string
  /** May be a view of a larger buffer. */
  readonly body: Uint8Array
  /** 0 means immediately. */
  readonly dueAt: number
  readonly deduplicationId: string | undefined
}

/** Returns the row of a message that is sent now. */
export function queueRow(message: QueueSend, now: number): QueueRow {
  const { id, clientId, metadata, tags, delayMs, expirationMs, maxReceiveCount, deadLetterQueue } = message
  return {
    id,
    clientId,
    timestamp: now,
    size: messageSize(message),
    metadata,
    tags: tagsJson(tags),
    expiresAt: expirationMs > 0 ? now + expirationMs : 0,
    maxReceiveCount,
    deadLetterQueue,
    body: message.body,
    dueAt: delayMs > 0 ? now + delayMs : 0,
    deduplicationId: message.deduplicationId,
  }
}

/** The columns of `queue_messages`, all of which `delayed_messages` has too. */
export const QUEUE_COLUMNS = ['key', ...Object.keys(MESSAGE_TABLES.queue_messages)].join(', ')

/** Like {@link QUEUE_COLUMNS}, with the receive count as a parameter. */
export const RETURNED_COLUMNS = QUEUE_COLUMNS.replace('receive_count', '?')

/** The parameters of a new row: its channel, its sequence, and {@link queueValues}. */
export const QUEUE_PARAMETERS = `${KEY}, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?`
export const QUEUE_VALUES = 12

export function queueValues(row: QueueRow): (string | number | Uint8Array)[] {
  const { id, clientId, timestamp, size, metadata, tags, expiresAt, maxReceiveCount, deadLetterQueue, body } = row
  return [id, clientId, timestamp, size, metadata, tags, expiresAt, maxReceiveCount, deadLetterQueue, body]
}

/** Like {@link QUEUE_PARAMETERS}, for a plain row: only the columns that most messages need are parameters. */
export const PLAIN_PARAMETERS = `${KEY}, ?, ?, ?, ?, '', ?, 0, 0, 0, '', ?`
export const PLAIN_VALUES = 8

export function isPlain({ metadata, expiresAt, maxReceiveCount, deadLetterQueue }: QueueRow): boolean {
  return metadata === '' && expiresAt === 0 && maxReceiveCount === 0 && deadLetterQueue === ''
}

/** The columns of a message that moves to its dead-letter queue. */
export const MOVED_COLUMNS = 'id, client_id AS clientId, timestamp, size, metadata, tags, body'

export type MovedRow = Pick<QueueRow, 'id' | 'clientId' | 'timestamp' | 'size' | 'metadata' | 'tags' | 'body'>

/** Returns the row of a dead letter: it has tags more, does not expire, and does not move again. */
export function deadLetterRow(row: MovedRow, tags: Tags): QueueRow {
  return {
    ...row,
    tags: tagsJson({ ...parseTags(row.tags), ...tags }),
    expiresAt: 0,
    maxReceiveCount: 0,
    deadLetterQueue: '',
    dueAt: 0,
    deduplicationId: undefined,
  }
}

// ── Messages of queues in memory ──

/** A message of a queue in memory. */
export interface QueuedMessage {
  readonly sequence: number
  /** The number of deliveries, stored or about to be stored. */
  receiveCount: number
  /** The size in bytes. This field and the following ones are set when the message was in memory. */
  size: number
  timestamp: number
  expiresAt: number
  maxReceiveCount: number
  deadLetterQueue: string
  /** `true` if the message came from another queue as a dead letter. */
  isDeadLetter: boolean
  /** The message, if it is in memory; otherwise it is read at delivery. */
  message: QueueMessage | undefined
}

/** Returns a message whose content is not read yet: only its sequence is known. */
export function unreadMessage(sequence: number): QueuedMessage {
  return {
    sequence,
    receiveCount: 0,
    size: 0,
    timestamp: 0,
    expiresAt: 0,
    maxReceiveCount: 0,
    deadLetterQueue: '',
    isDeadLetter: false,
    message: undefined,
  }
}

/** Returns a message that was stored. @param kept The message itself stays in memory */
export function sentMessage(
  { id, clientId, metadata, tags }: OutgoingMessage,
  { timestamp, size, expiresAt, maxReceiveCount, deadLetterQueue, body, tags: tagsText }: QueueRow,
  { channel, sequence, kept }: { readonly channel: string; readonly sequence: number; readonly kept: boolean },
): QueuedMessage {
  const added = { channel, timestamp, sequence, receiveCount: 0, expiresAt, maxReceiveCount, deadLetterQueue }
  const message = kept ? toQueueMessage({ id, clientId, body: ownBody(body), metadata, tags }, added) : undefined
  const isDeadLetter = hasSourceTag(tagsText)
  return {
    sequence,
    receiveCount: 0,
    size,
    timestamp,
    expiresAt,
    maxReceiveCount,
    deadLetterQueue,
    isDeadLetter,
    message,
  }
}

/** The columns of a stored message as {@link readMessage} expects them, before its body. */
export const READ_COLUMNS = `${SEQUENCE}, id, client_id, timestamp, size, metadata, tags, expires_at, receive_count,
  max_receive_count, dead_letter_queue`

/** A row as an array: an object with these names for each row costs more. */
export type ReadRow = readonly [
  sequence: number,
  id: string,
  clientId: string,
  timestamp: number,
  size: number,
  metadata: string,
  tags: string,
  expiresAt: number,
  receiveCount: number,
  maxReceiveCount: number,
  deadLetterQueue: string,
  body: Uint8Array | null,
]

/** Returns a message that was read. @throws DamagedRowError */
export function readMessage(row: ReadRow, channel: string): QueuedMessage {
  const [sequence, id, clientId, timestamp, size, metadata, tags, expiresAt, receiveCount, maxReceiveCount] = row
  const deadLetterQueue = row[10]
  const body = row[11]
  const added = { channel, timestamp, sequence, receiveCount, expiresAt, maxReceiveCount, deadLetterQueue }
  const message =
    body === null
      ? undefined
      : toQueueMessage({ id, clientId, body: plainBytes(body), metadata, tags: parseTags(tags) }, added)
  const isDeadLetter = hasSourceTag(tags)
  return {
    sequence,
    receiveCount,
    size,
    timestamp,
    expiresAt,
    maxReceiveCount,
    deadLetterQueue,
    isDeadLetter,
    message,
  }
}

// ── Entries of events stores ──

/** A new entry of an events store. The writer sets the timestamp. */
export interface EntryRow {
  readonly id: string
  readonly clientId: string
  readonly size: number
  readonly metadata: string
  readonly tags: string
  readonly key: string | null
  readonly tombstone: 0 | 1
  readonly body: Uint8Array
  readonly expectLastOfKey: number | undefined
  readonly deduplicationId: string | undefined
}

export function entryRow(message: EventsStoreAppend): EntryRow {
  const { id, clientId, metadata, tags, key = null, expectLastOfKey, tombstone = false, deduplicationId } = message
  return {
    id,
    clientId,
    size: messageSize(message),
    metadata,
    tags: tagsJson(tags),
    key,
    tombstone: tombstone ? 1 : 0,
    body: ownBody(message.body),
    expectLastOfKey,
    deduplicationId,
  }
}

/** Inserts an entry. Its parameters are the channel, the sequence, the timestamp, and {@link entryValues}. */
export const INSERT_ENTRY = `
  INSERT INTO log_entries (key, timestamp, id, client_id, size, metadata, tags, log_key, tombstone, body)
  VALUES (${KEY}, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

export function entryValues(row: EntryRow): (string | number | Uint8Array | null)[] {
  const { id, clientId, size, metadata, tags, key, tombstone, body } = row
  return [id, clientId, size, metadata, tags, key, tombstone, body]
}

/** Returns an entry that was appended. */
export function appendedEvent(
  { id, clientId, metadata, tags, key, tombstone }: EventsStoreAppend,
  { body }: EntryRow,
  { channel, sequence, timestamp }: Pick<StoredEvent, 'channel' | 'sequence' | 'timestamp'>,
): StoredEvent {
  const sent = { id, clientId, body, metadata, tags }
  return toStoredEvent(sent, { channel, timestamp, sequence, key, tombstone: tombstone || undefined })
}

/** The columns of a stored entry as {@link readEvent} expects them. */
export const READ_ENTRY_COLUMNS = `${SEQUENCE} AS sequence, id, client_id AS clientId, timestamp, size, metadata, tags, log_key AS eventKey,
  tombstone, body`

export interface ReadEntryRow extends Omit<EntryRow, 'key' | 'expectLastOfKey' | 'deduplicationId'> {
  readonly sequence: number
  readonly timestamp: number
  readonly eventKey: string | null
}

/** Returns an entry that was read. @throws DamagedRowError */
export function readEvent(row: ReadEntryRow, channel: string): StoredEvent {
  const { id, clientId, metadata, timestamp, sequence } = row
  const sent = { id, clientId, body: plainBytes(row.body), metadata, tags: parseTags(row.tags) }
  const tombstone = row.tombstone === 1 || undefined
  return toStoredEvent(sent, { channel, timestamp, sequence, key: row.eventKey ?? undefined, tombstone })
}

// ── Tags and bodies ──

const NO_TAGS: Tags = Object.freeze({})

function tagsJson(tags: Tags): string {
  return Object.keys(tags).length === 0 ? '' : JSON.stringify(tags)
}

/** Returns whether stored tags have `dlq_source`. In JSON a text within a value has its quotes escaped. */
export function hasSourceTag(json: string): boolean {
  return json.includes('"dlq_source":')
}

/** Parses stored tags. @throws DamagedRowError */
export function parseTags(json: string): Tags {
  if (json === '') return NO_TAGS
  try {
    const tags = parseJsonText(json)
    if (areTags(tags)) return tags
    throw new TypeError('they are not an object')
  } catch (error) {
    throw new DamagedRowError('the tags of a message cannot be read', { cause: error })
  }
}

/** Only this engine has written them, so the values are not checked again. */
function areTags(value: unknown): value is Tags {
  return typeof value === 'object' && value !== null
}

/**
 * Returns the body in a form that is cheap to keep in memory and to post to the writer alone. A view keeps its whole
 * buffer, and posting it would copy the buffer.
 */
export function ownBody(body: Uint8Array): Uint8Array {
  return body.byteLength === body.buffer.byteLength ? body : new Uint8Array(body)
}

/** Converts a Buffer from SQLite to a plain Uint8Array. @throws DamagedRowError */
function plainBytes(bytes: Uint8Array): Uint8Array {
  if (!(bytes instanceof Uint8Array)) throw new DamagedRowError('the body of a message cannot be read')
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
