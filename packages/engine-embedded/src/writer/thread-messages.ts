import type { SettingsEntry } from '@signalbox/broker-core/engine'
import { copyInTurns } from '@signalbox/broker-core/internal'

import type { DamagedPlace } from '../store/damage.ts'
import type { EntryRow, QueueRow } from '../store/message-rows.ts'
import { ownBody } from '../store/message-rows.ts'
import type { PackedEntryRows, PackedQueueRows, Texts } from '../store/packed-rows.ts'
import { entryRowAt, packEntryRows, packQueueRows, packTexts, queueRowAt, textAt } from '../store/packed-rows.ts'
import type { StoredChannel } from '../store/stored-channel.ts'
import type {
  AppendOperation,
  Operation,
  OperationRefusal,
  Result,
  SendOperation,
  SettleOperation,
  SettleOperationResult,
} from './operations.ts'

/** The settings of the writer. */
export interface WriterSettings {
  readonly file: string
  readonly wal: string
  readonly reserve: string
  readonly queueMaxMessages: number
  readonly queueMaxBytes: number
  readonly eventsStoreMaxAgeMs: number
  readonly eventsStoreMaxBytes: number
  readonly durableGroupMs: number
  readonly maxDurableGroups: number
  /** The settings of channels that are in force at the start; `useSettings` replaces them. */
  readonly channelSettings: readonly SettingsEntry[]
  /** `true` after a failure: the writer copies the whole WAL back and syncs it again before the first operation. */
  readonly recover: boolean
  /**
   * Tests only: while the shared number is not 0, commits fail. 1: like a full disk. 2: like a failed sync. 3: like a
   * failed sync after everything was written.
   */
  readonly faults: Int32Array | undefined
}

/** The data of a new thread. Its first message is the {@link WriterSettings}. */
export interface WriterThreadData {
  /** The folder for compiled code; `undefined` if the process has none. */
  readonly compileCache: string | undefined
}

export type WriterRequest = Post | { readonly close: true }

export type WriterReply = ReadyReply | GroupReply | DamagedReply | FailedReply | { readonly kind: 'closed' }

/** The store is open, and the writer accepts operations. */
interface ReadyReply {
  readonly kind: 'ready'
  /** `true` if the disk is full: no messages are accepted yet. */
  readonly full: boolean
}

/**
 * The result of one commit: a result for every operation in order, and the current state of the channels it changed.
 */
export interface GroupReply {
  readonly kind: 'group'
  readonly results: PackedResults
  readonly changed: readonly StoredChannel[]
  readonly removed: readonly StoredChannel[]
  readonly durationMs: number
  /** The number of operations in the commit; the others were refused or tried alone. */
  readonly committed: number
  /** `false` if there was nothing to write, and so nothing to sync. */
  readonly wrote: boolean
}

/** Damage without a refused operation. */
interface DamagedReply {
  readonly kind: 'damaged'
  readonly place: DamagedPlace
  readonly reason: string
}

/** The connection was closed; the outcome of running operations is unknown. */
interface FailedReply {
  readonly kind: 'failed'
  readonly code: string
  readonly message: string
}

/**
 * Operations in the form in which they are posted to the thread. Nearly all are sends of small messages, appends of
 * small entries, and settlements of one message: those are packed as columns. Other operations are cloned.
 */
interface Post {
  /** The kind of each operation: `SEND`, `SETTLE`, `APPEND`, or 0 for others. */
  readonly kinds: Uint8Array
  readonly sends: PackedSends | undefined
  readonly appends: PackedAppends | undefined
  readonly settlements: PackedSettlements | undefined
  readonly others: readonly Operation[]
}

interface PackedSends {
  readonly channel: Texts
  /** The number of messages of each send; undefined if each has one. */
  readonly counts: Uint32Array | undefined
  readonly rows: PackedQueueRows
}

interface PackedAppends {
  readonly channel: Texts
  readonly now: Float64Array
  readonly rows: PackedEntryRows
}

interface PackedSettlements {
  readonly channel: Texts
  /** {@link SETTLEMENT_NUMBERS} numbers for each: the channel's id, and the sequence. */
  readonly numbers: Float64Array
}

const SEND = 1
const SETTLE = 2
const APPEND = 3

const SETTLEMENT_NUMBERS = 2

/** The maximum size of a packed body, in bytes. Larger bodies are cloned, or moved. */
const SMALL_BODY = 16 * 1024

export function packOperations(operations: readonly Operation[]): Post {
  const kinds = new Uint8Array(operations.length)
  const others: Operation[] = []
  const sends: SendOperation[] = []
  const appends: AppendOperation[] = []
  const settlements: SettleOperation[] = []
  for (const [i, operation] of operations.entries()) {
    if (operation.kind === 'send' && operation.messages.every(isSmall)) {
      kinds[i] = SEND
      sends.push(operation)
    } else if (operation.kind === 'append' && isSmall(operation.entry)) {
      kinds[i] = APPEND
      appends.push(operation)
    } else if (operation.kind === 'settle' && operation.sequences.length === 1) {
      kinds[i] = SETTLE
      settlements.push(operation)
    } else {
      others.push(operation.kind === 'send' ? withOwnBodies(operation) : operation)
    }
  }
  return {
    kinds,
    sends: sends.length === 0 ? undefined : packSends(sends),
    appends: appends.length === 0 ? undefined : packAppends(appends),
    settlements: settlements.length === 0 ? undefined : packSettlements(settlements),
    others,
  }
}

/** An operation, and the buffers of it that have no other user. */
interface MovableOperation {
  readonly operation: Operation
  readonly moved: readonly ArrayBuffer[]
}

/**
 * Copies the bodies of an operation that are not small, in turns with other work, so that the copies can be moved to the
 * thread. A clone would be made at once, which takes up to 7 ms for each megabyte.
 */
export async function withMovableBodies(operation: Operation): Promise<MovableOperation> {
  const moved: ArrayBuffer[] = []
  const copied = async <Row extends QueueRow | EntryRow>(row: Row): Promise<Row> => {
    if (isSmall(row)) return row
    const body = await copyInTurns(row.body)
    moved.push(body.buffer)
    return { ...row, body }
  }
  if (operation.kind === 'append') return { operation: { ...operation, entry: await copied(operation.entry) }, moved }
  if (operation.kind !== 'send') return { operation, moved }
  const messages: QueueRow[] = []
  for (const row of operation.messages) messages.push(await copied(row))
  return { operation: { ...operation, messages }, moved }
}

/** The bytes from which a buffer is moved to the other thread: copying less costs no more than moving. */
const MOVED_BYTES = 16 * 1024

/** Returns the buffers of a post that are moved to the other thread, and not copied. */
export function movedBuffers({ sends, appends }: Post): ArrayBuffer[] {
  const buffers: ArrayBuffer[] = []
  for (const packed of [sends, appends]) if (packed) buffers.push(packed.rows.bodies.buffer)
  return buffers.filter(({ byteLength }) => byteLength >= MOVED_BYTES)
}

function withOwnBodies(send: SendOperation): SendOperation {
  return { ...send, messages: send.messages.map((row) => ({ ...row, body: ownBody(row.body) })) }
}

function isSmall({ body }: QueueRow | EntryRow): boolean {
  return body.byteLength <= SMALL_BODY
}

export function unpackOperations({ kinds, sends, appends, settlements, others }: Post): Operation[] {
  const operations: Operation[] = []
  let other = 0
  let send = 0
  let row = 0
  let append = 0
  let settlement = 0
  for (const kind of kinds) {
    if (kind === SEND && sends) {
      const operation = sendAt(sends, send++, row)
      row += operation.messages.length
      operations.push(operation)
    } else if (kind === APPEND && appends) {
      operations.push(appendAt(appends, append++))
    } else if (kind === SETTLE && settlements) {
      operations.push(settlementAt(settlements, settlement++))
    } else {
      const operation = others[other++]
      if (operation) operations.push(operation)
    }
  }
  return operations
}

function packSends(sends: readonly SendOperation[]): PackedSends {
  const rows: QueueRow[] = []
  for (const { messages } of sends) for (const message of messages) rows.push(message)
  return {
    channel: packTexts(sends, ({ channel }) => channel),
    counts: rows.length === sends.length ? undefined : Uint32Array.from(sends, ({ messages }) => messages.length),
    rows: packQueueRows(rows),
  }
}

/** @param first The first of its rows */
function sendAt({ channel, counts, rows }: PackedSends, send: number, first: number): SendOperation {
  const message = queueRowAt(rows, first)
  const messages = [message]
  const count = counts?.[send] ?? 1
  for (let row = first + 1; row < first + count; row++) messages.push(queueRowAt(rows, row))
  return { kind: 'send', channel: textAt(channel, send), now: message.timestamp, messages }
}

function packAppends(appends: readonly AppendOperation[]): PackedAppends {
  return {
    channel: packTexts(appends, ({ channel }) => channel),
    now: Float64Array.from(appends, ({ now }) => now),
    rows: packEntryRows(appends.map(({ entry }) => entry)),
  }
}

function appendAt({ channel, now, rows }: PackedAppends, append: number): AppendOperation {
  return { kind: 'append', channel: textAt(channel, append), now: now[append] ?? 0, entry: entryRowAt(rows, append) }
}

function packSettlements(settlements: readonly SettleOperation[]): PackedSettlements {
  const numbers = new Float64Array(settlements.length * SETTLEMENT_NUMBERS)
  let at = 0
  for (const { channelId, sequences } of settlements) {
    numbers[at++] = channelId
    numbers[at++] = sequences[0] ?? 0
  }
  return { channel: packTexts(settlements, ({ channel }) => channel), numbers }
}

function settlementAt({ channel, numbers }: PackedSettlements, row: number): SettleOperation {
  const at = row * SETTLEMENT_NUMBERS
  return {
    kind: 'settle',
    channel: textAt(channel, row),
    channelId: numbers[at] ?? 0,
    sequences: [numbers[at + 1] ?? 0],
  }
}

/** The results of a group in the form in which they are posted back; see {@link Post}. */
interface PackedResults {
  /**
   * Three numbers for each result: the channel's id and the sequence of a plain send or append, and the timestamp of an
   * append; or `SETTLED` or `LISTED`, and zeros.
   */
  readonly numbers: Float64Array
  readonly others: readonly (Result | OperationRefusal)[]
}

const RESULT_NUMBERS = 3
const SETTLED = 0
const LISTED = -1

const settled: SettleOperationResult = { kind: 'settle' }

export function packResults(results: readonly (Result | OperationRefusal)[]): PackedResults {
  const numbers = new Float64Array(results.length * RESULT_NUMBERS)
  const others: (Result | OperationRefusal)[] = []
  let at = 0
  for (const result of results) {
    if (result.kind === 'send' && result.sequences.length === 1 && !result.duplicates) {
      numbers[at] = result.channelId
      numbers[at + 1] = result.sequences[0] ?? 0
    } else if (result.kind === 'append' && result.duplicateOf === undefined && result.timestamp > 0) {
      numbers[at] = result.channelId
      numbers[at + 1] = result.sequence
      numbers[at + 2] = result.timestamp
    } else if (result.kind === 'settle') {
      numbers[at] = SETTLED
    } else {
      numbers[at] = LISTED
      others.push(result)
    }
    at += RESULT_NUMBERS
  }
  return { numbers, others }
}

export function unpackResults({ numbers, others }: PackedResults): (Result | OperationRefusal)[] {
  const results: (Result | OperationRefusal)[] = []
  let other = 0
  for (let at = 0; at < numbers.length; at += RESULT_NUMBERS) {
    const channelId = numbers[at] ?? LISTED
    const sequence = numbers[at + 1] ?? 0
    const timestamp = numbers[at + 2] ?? 0
    if (timestamp > 0) {
      results.push({ kind: 'append', channelId, sequence, timestamp, duplicateOf: undefined })
    } else if (channelId > 0) {
      results.push({ kind: 'send', channelId, sequences: [sequence], duplicates: undefined })
    } else if (channelId === SETTLED) {
      results.push(settled)
    } else {
      const result = others[other++]
      if (result) results.push(result)
    }
  }
  return results
}
