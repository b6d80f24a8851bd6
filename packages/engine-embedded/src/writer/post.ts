import type { AppendColumns } from './append-columns.ts'
import { appendAt, isPlainAppend, packAppends } from './append-columns.ts'
import type {
  AppendOperation,
  NewQueueMessage,
  Operation,
  OperationRefusal,
  Result,
  SendOperation,
  SettleOperation,
  SettleOperationResult,
} from './operations.ts'

/**
 * Operations in the form in which they are posted to the thread. Nearly all are sends of one small message, appends of
 * one small entry, and settlements of one message: those are packed as columns, with all bodies in one buffer, because cloning an object and
 * a buffer for each costs more than storing it. Other operations are cloned.
 */
export interface Post {
  /** The kind of each operation: `SEND`, `SETTLE`, `APPEND`, or 0 for others. */
  readonly kinds: Uint8Array
  readonly sends: SendColumns | undefined
  readonly appends: AppendColumns | undefined
  readonly settlements: SettlementColumns | undefined
  readonly others: readonly Operation[]
}

interface SendColumns {
  readonly channel: Column
  readonly id: Column
  readonly clientId: Column
  readonly metadata: Column
  readonly tags: Column
  readonly deadLetterQueue: Column
  /** {@link SEND_NUMBERS} numbers for each: now, size, expiresAt, dueAt, maxReceiveCount, end of the body. */
  readonly numbers: Float64Array
  readonly bodies: Uint8Array
}

interface SettlementColumns {
  readonly channel: Column
  /** {@link SETTLEMENT_NUMBERS} numbers for each: the channel's id, the sequence, 1 for expired. */
  readonly numbers: Float64Array
}

/** One text for each operation, or a single text that all share. */
type Column = string | readonly string[]

const SEND = 1
const SETTLE = 2
const APPEND = 3

const SEND_NUMBERS = 6
const SETTLEMENT_NUMBERS = 3

/** The maximum size of a packed body, in bytes. Larger bodies are cloned: packing them would block the event loop. */
const SMALL_BODY = 16 * 1024

export function packOperations(operations: readonly Operation[]): Post {
  const kinds = new Uint8Array(operations.length)
  const others: Operation[] = []
  const sends: SendOperation[] = []
  const messages: NewQueueMessage[] = []
  const appends: AppendOperation[] = []
  const settlements: SettleOperation[] = []
  for (const [i, operation] of operations.entries()) {
    const message = operation.kind === 'send' ? plainMessage(operation) : undefined
    if (operation.kind === 'send' && message) {
      kinds[i] = SEND
      sends.push(operation)
      messages.push(message)
    } else if (operation.kind === 'append' && isPlainAppend(operation, SMALL_BODY)) {
      kinds[i] = APPEND
      appends.push(operation)
    } else if (operation.kind === 'settle' && operation.sequences.length === 1) {
      kinds[i] = SETTLE
      settlements.push(operation)
    } else {
      others.push(operation)
    }
  }
  return {
    kinds,
    sends: sends.length === 0 ? undefined : packSends(sends, messages),
    appends: appends.length === 0 ? undefined : packAppends(appends),
    settlements: settlements.length === 0 ? undefined : packSettlements(settlements),
    others,
  }
}

function plainMessage({ messages }: SendOperation): NewQueueMessage | undefined {
  const message = messages[0]
  const plain = messages.length === 1 && message?.deduplicationId === undefined
  return plain && message && message.columns[9].byteLength <= SMALL_BODY ? message : undefined
}

function packSends(sends: readonly SendOperation[], messages: readonly NewQueueMessage[]): SendColumns {
  let bytes = 0
  for (const { columns } of messages) bytes += columns[9].byteLength
  const numbers = new Float64Array(sends.length * SEND_NUMBERS)
  const bodies = new Uint8Array(bytes)
  let at = 0
  let end = 0
  for (const { columns, dueAt } of messages) {
    const [, , timestamp, size, , , expiresAt, maxReceiveCount, , body] = columns
    bodies.set(body, end)
    end += body.byteLength
    numbers[at++] = timestamp
    numbers[at++] = size
    numbers[at++] = expiresAt
    numbers[at++] = dueAt
    numbers[at++] = maxReceiveCount
    numbers[at++] = end
  }
  return {
    channel: column(sends, ({ channel }) => channel),
    id: column(messages, ({ columns }) => columns[0]),
    clientId: column(messages, ({ columns }) => columns[1]),
    metadata: column(messages, ({ columns }) => columns[4]),
    tags: column(messages, ({ columns }) => columns[5]),
    deadLetterQueue: column(messages, ({ columns }) => columns[8]),
    numbers,
    bodies,
  }
}

function packSettlements(settlements: readonly SettleOperation[]): SettlementColumns {
  const numbers = new Float64Array(settlements.length * SETTLEMENT_NUMBERS)
  let at = 0
  for (const { channelId, sequences, expired } of settlements) {
    numbers[at++] = channelId
    numbers[at++] = sequences[0] ?? 0
    numbers[at++] = expired ? 1 : 0
  }
  return { channel: column(settlements, ({ channel }) => channel), numbers }
}

function column<T>(rows: readonly T[], textOf: (row: T) => string): Column {
  const texts = rows.map(textOf)
  const first = texts[0] ?? ''
  return texts.every((text) => text === first) ? first : texts
}

function textAt(texts: Column, row: number): string {
  return typeof texts === 'string' ? texts : (texts[row] ?? '')
}

export function unpackOperations({ kinds, sends, appends, settlements, others }: Post): Operation[] {
  const operations: Operation[] = []
  let other = 0
  let send = 0
  let append = 0
  let settlement = 0
  for (const kind of kinds) {
    if (kind === SEND && sends) {
      operations.push(sendAt(sends, send++))
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

function sendAt(sends: SendColumns, row: number): SendOperation {
  const { numbers, bodies } = sends
  const at = row * SEND_NUMBERS
  const now = numbers[at] ?? 0
  const begin = row === 0 ? 0 : numbers[at - 1]
  const message: NewQueueMessage = {
    columns: [
      textAt(sends.id, row),
      textAt(sends.clientId, row),
      now,
      numbers[at + 1] ?? 0,
      textAt(sends.metadata, row),
      textAt(sends.tags, row),
      numbers[at + 2] ?? 0,
      numbers[at + 4] ?? 0,
      textAt(sends.deadLetterQueue, row),
      bodies.subarray(begin, numbers[at + 5]),
    ],
    dueAt: numbers[at + 3] ?? 0,
  }
  return { kind: 'send', channel: textAt(sends.channel, row), now, messages: [message] }
}

function settlementAt({ channel, numbers }: SettlementColumns, row: number): SettleOperation {
  const at = row * SETTLEMENT_NUMBERS
  return {
    kind: 'settle',
    channel: textAt(channel, row),
    channelId: numbers[at] ?? 0,
    sequences: [numbers[at + 1] ?? 0],
    expired: numbers[at + 2] === 1,
  }
}

/** The results of a group in the form in which they are posted back; see {@link Post}. */
export interface PackedResults {
  /**
   * Two numbers for each result: the channel's id and the sequence of a plain send; or `SETTLED` or `LISTED`, and 0.
   */
  readonly numbers: Float64Array
  readonly others: readonly (Result | OperationRefusal)[]
}

const SETTLED = 0
const LISTED = -1

const settled: SettleOperationResult = { kind: 'settle' }

export function packResults(results: readonly (Result | OperationRefusal)[]): PackedResults {
  const numbers = new Float64Array(results.length * 2)
  const others: (Result | OperationRefusal)[] = []
  let at = 0
  for (const result of results) {
    if (result.kind === 'send' && result.sequences.length === 1 && !result.duplicates) {
      numbers[at] = result.channelId
      numbers[at + 1] = result.sequences[0] ?? 0
    } else if (result.kind === 'settle') {
      numbers[at] = SETTLED
    } else {
      numbers[at] = LISTED
      others.push(result)
    }
    at += 2
  }
  return { numbers, others }
}

export function unpackResults({ numbers, others }: PackedResults): (Result | OperationRefusal)[] {
  const results: (Result | OperationRefusal)[] = []
  let other = 0
  for (let at = 0; at < numbers.length; at += 2) {
    const channelId = numbers[at] ?? LISTED
    if (channelId > 0) {
      results.push({ kind: 'send', channelId, sequences: [numbers[at + 1] ?? 0], duplicates: undefined })
    } else if (channelId === SETTLED) {
      results.push(settled)
    } else {
      const result = others[other++]
      if (result) results.push(result)
    }
  }
  return results
}
