import { expect, test } from 'vitest'

import type { EntryRow, QueueRow } from '../src/store/message-rows.ts'
import type { Operation, OperationRefusal, Result } from '../src/writer/operations.ts'
import { packOperations, packResults, unpackOperations, unpackResults } from '../src/writer/thread-messages.ts'

function send(channel: string, id: string, body: Uint8Array, more: Partial<QueueRow> = {}) {
  const message: QueueRow = {
    id,
    clientId: 'client',
    timestamp: 1_000,
    size: body.byteLength,
    metadata: '',
    tags: '',
    expiresAt: 2_000,
    maxReceiveCount: 3,
    deadLetterQueue: 'dead',
    body,
    dueAt: 0,
    deduplicationId: undefined,
    ...more,
  }
  return { kind: 'send', channel, now: 1_000, messages: [message] } satisfies Operation
}

function append(channel: string, id: string, body: Uint8Array, more: Partial<EntryRow> = {}) {
  const entry: EntryRow = {
    id,
    clientId: 'client',
    size: body.byteLength,
    metadata: 'm',
    tags: '',
    key: id === '1' ? null : 'key',
    tombstone: 0,
    body,
    expectLastOfKey: undefined,
    deduplicationId: undefined,
    ...more,
  }
  return { kind: 'append', channel, now: 1_000, entry } satisfies Operation
}

const bytes = (length: number, value: number): Uint8Array => new Uint8Array(length).fill(value)

test('post - operations of all sizes and kinds arrive as they were, in their order', () => {
  const batch = send('a', '6', bytes(1, 6))
  const operations: Operation[] = [
    send('a', '1', bytes(3, 1)),
    { kind: 'settle', channel: 'a', channelId: 7, sequences: [2 ** 39], expired: false },
    send('b', '2', bytes(0, 0), { metadata: 'm', dueAt: 5_000 }),
    { kind: 'sweep', now: 5 },
    { kind: 'settle', channel: 'b', channelId: 8, sequences: [1], expired: true },
    { kind: 'settle', channel: 'b', channelId: 8, sequences: [1, 2], expired: false },
    send('a', '3', bytes(100_000, 3)),
    append('a', '1', bytes(3, 1)),
    append('b', '2', bytes(0, 0), { expectLastOfKey: 0 }),
    append('b', '3', bytes(100_000, 3), { expectLastOfKey: 2 ** 39 }),
    append('b', '4', bytes(4, 4), { deduplicationId: 'once' }),
    append('b', '5', bytes(5, 5), { expectLastOfKey: 2 ** 39 }),
    { ...batch, messages: batch.messages.map((message) => ({ ...message, deduplicationId: 'once' })) },
    { ...batch, messages: [...batch.messages, ...batch.messages] },
    { ...batch, messages: [...batch.messages, ...send('a', '7', bytes(100_000, 7)).messages] },
    send('a', '4', bytes(2, 4)),
    { kind: 'probe' },
  ]

  expect(unpackOperations(structuredClone(packOperations(operations)))).toEqual(operations)
})

test('post - results arrive as they were, in their order', () => {
  const refusal: OperationRefusal = { kind: 'refused', code: 'QUEUE_FULL', message: 'full', details: { limit: 1 } }
  const results: (Result | OperationRefusal)[] = [
    { kind: 'send', channelId: 2 ** 23 - 1, sequences: [2 ** 40 - 1], duplicates: undefined },
    { kind: 'settle' },
    refusal,
    { kind: 'send', channelId: 1, sequences: [1, 2], duplicates: undefined },
    { kind: 'send', channelId: 1, sequences: [1], duplicates: ['first'] },
    { kind: 'settle' },
    { kind: 'send', channelId: 1, sequences: [3], duplicates: undefined },
  ]

  expect(unpackResults(structuredClone(packResults(results)))).toEqual(results)
})
