import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'

import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, pause } from './contract-case.ts'
import {
  assertBytes,
  assertNothingDue,
  assertTags,
  CONSUMER,
  LONG_LEASE_MS,
  numbered,
  PRODUCER,
  queued,
  receive,
  receiveMany,
  receiveOne,
  sendAll,
  text,
  texts,
} from './messages.ts'

function starts(bodies: readonly string[]): string[] {
  return bodies.map((body) => body.slice(0, 2))
}

/** Cases for sending to and receiving from a queue. */
export const queueCases: readonly ContractCase[] = [
  contractCase('queues - a message arrives as it was sent', async ({ engine, channel }) => {
    const queue = channel('whole')
    const id = randomUUID()
    const before = Date.now()
    const sent = await engine.queues.send(
      queue,
      queued('the body', { id, metadata: 'about the body', tags: { a: '1', b: '' } }),
    )
    const after = Date.now()
    assert.deepEqual({ ...sent }, { id, sequence: 1, duplicate: false })
    const { receipt, message } = await receiveOne(engine, queue)
    assert.ok(typeof receipt === 'string' && receipt.length > 0, 'a delivery has a receipt')
    assert.equal(message.id, id)
    assert.equal(message.channel, queue)
    assert.equal(message.clientId, PRODUCER)
    assert.equal(text(message), 'the body')
    assert.equal(message.metadata, 'about the body')
    assertTags(message.tags, { a: '1', b: '' })
    assert.ok(message.timestamp >= before - 5_000 && message.timestamp <= after + 5_000, 'the time of acceptance')
    assert.equal(message.sequence, 1)
    assert.equal(message.receiveCount, 1)
    assert.equal(message.expiresAt, 0)
    assert.equal(message.maxReceiveCount, 0)
    assert.equal(message.deadLetterQueue, '')
  }),

  contractCase('queues - a message has the options of its producer', async ({ engine, channel }) => {
    const queue = channel('asked')
    const deadLetterQueue = channel('asked-dead')
    await engine.queues.send(queue, queued('x', { expirationMs: 60_000, maxReceiveCount: 3, deadLetterQueue }))
    const { message } = await receiveOne(engine, queue)
    assert.equal(message.maxReceiveCount, 3)
    assert.equal(message.deadLetterQueue, deadLetterQueue)
    assert.ok(Math.abs(message.expiresAt - message.timestamp - 60_000) < 1_000, 'it expires 60 s after the send')
  }),

  contractCase('C2 - queues: sequences are 1, 2, 3 and messages arrive in FIFO order', async ({ engine, channel }) => {
    const queue = channel('fifo')
    const bodies = numbered(30)
    for (const [i, body] of bodies.entries()) {
      const { sequence } = await engine.queues.send(queue, queued(body))
      assert.equal(sequence, i + 1)
    }
    const received: string[] = []
    while (received.length < bodies.length) {
      const { receipt, message } = await receiveOne(engine, queue)
      assert.equal(message.sequence, received.length + 1)
      received.push(text(message))
      await engine.queues.ack([receipt], CONSUMER)
    }
    assert.deepEqual(received, bodies)
    await assertNothingDue(engine, queue)
  }),

  contractCase(
    'queues - concurrent sends get one sequence each, and arrive in that order',
    async ({ engine, channel }) => {
      const queue = channel('concurrent')
      const sent = await Promise.all(
        numbered(64).map(async (body) => ({
          body,
          sequence: (await engine.queues.send(queue, queued(body))).sequence,
        })),
      )
      sent.sort((a, b) => a.sequence - b.sequence)
      assert.deepEqual(
        sent.map(({ sequence }) => sequence),
        sent.map((_, i) => i + 1),
      )
      const deliveries = await receiveMany(engine, queue, 64)
      assert.deepEqual(
        texts(deliveries.map(({ message }) => message)),
        sent.map(({ body }) => body),
      )
    },
  ),

  contractCase('queues - a batch is stored in order', async ({ engine, channel }) => {
    const queue = channel('batch')
    await engine.queues.send(queue, queued('before'))
    const results = await engine.queues.sendBatch(
      queue,
      numbered(20).map((body) => queued(body, { id: body })),
    )
    assert.deepEqual(
      results.map(({ id, sequence, duplicate }) => [id, sequence, duplicate]),
      numbered(20).map((id, i) => [id, i + 2, false]),
    )
    await engine.queues.send(queue, queued('after'))
    const deliveries = await receiveMany(engine, queue, 22)
    assert.deepEqual(texts(deliveries.map(({ message }) => message)), ['before', ...numbered(20), 'after'])
  }),

  contractCase(
    'queues - the messages of a batch keep their own delay, expiry and tags',
    async ({ engine, channel }) => {
      const queue = channel('batch-own')
      await engine.queues.sendBatch(queue, [
        queued('delayed', { delayMs: 60_000 }),
        queued('expiring', { expirationMs: 60_000 }),
        queued('plain', { tags: { own: 'tag' } }),
      ])
      const [expiring, plain] = await receiveMany(engine, queue, 2)
      assert.ok(expiring && plain)
      assert.equal(text(expiring.message), 'expiring')
      assert.ok(expiring.message.expiresAt > 0)
      assert.equal(text(plain.message), 'plain')
      assert.equal(plain.message.expiresAt, 0)
      assertTags(plain.message.tags, { own: 'tag' })
      await assertNothingDue(engine, queue)
    },
  ),

  contractCase('queues - two queues share nothing', async ({ engine, channel }) => {
    const one = channel('one')
    const two = channel('two')
    await engine.queues.send(one, queued('for one'))
    const { sequence } = await engine.queues.send(two, queued('for two'))
    assert.equal(sequence, 1)
    assert.equal(text((await receiveOne(engine, two)).message), 'for two')
    await assertNothingDue(engine, two)
    assert.equal(text((await receiveOne(engine, one)).message), 'for one')
  }),

  contractCase('queues - a body may be empty', async ({ engine, channel }) => {
    const queue = channel('empty')
    await engine.queues.send(queue, queued(new Uint8Array(0)))
    assertBytes((await receiveOne(engine, queue)).message.body, new Uint8Array(0))
  }),

  contractCase('queues - a body may contain any bytes', async ({ engine, channel }) => {
    const queue = channel('binary')
    const body = Uint8Array.from({ length: 1024 }, (_, i) => (i * 7) % 256)
    await engine.queues.send(queue, queued(body))
    assertBytes((await receiveOne(engine, queue)).message.body, body)
  }),

  contractCase('queues - a body that is a view of a larger buffer arrives alone', async ({ engine, channel }) => {
    const queue = channel('view')
    const whole = Uint8Array.from({ length: 100 }, (_, i) => i)
    const view = whole.subarray(40, 50)
    await engine.queues.send(queue, queued(view))
    whole.fill(255)
    assertBytes(
      (await receiveOne(engine, queue)).message.body,
      Uint8Array.from({ length: 10 }, (_, i) => i + 40),
    )
  }),

  contractCase('queues - a body may be as large as the limit allows, 1 MiB here', async ({ engine, channel }) => {
    const queue = channel('large')
    const body = new Uint8Array(Math.min(1024 * 1024, engine.limits.maxMessageBytes))
    for (let i = 0; i < body.length; i += 1) body[i] = (i * 31 + (i >> 8)) % 256
    await engine.queues.send(queue, queued(body))
    const { receipt, message } = await receiveOne(engine, queue)
    assertBytes(message.body, body)
    assert.equal((await engine.queues.ack([receipt], CONSUMER)).settled, 1)
  }),

  contractCase('queues - metadata and tags may contain any characters', async ({ engine, channel }) => {
    const queue = channel('characters')
    const metadata = 'größe 🙂\r\n\t"quoted" \u0000 \u2028 end '
    const tags = Object.fromEntries([
      ['', 'the empty key'],
      ['__proto__', 'data'],
      ['constructor', 'data too'],
      ['a.b*c>d', 'dots and stars'],
      [' blank ', ' kept '],
      ['ключ 🔑', 'значение 🙂'],
      ['line\nbreak', 'value\r\nwith: break'],
      ['=:;,"\'\\', '{"json": [1, 2]}'],
      ['10', 'a number'],
      ['2', 'another'],
      ['empty', ''],
    ])
    await engine.queues.send(queue, queued('x', { metadata, tags }))
    const { message } = await receiveOne(engine, queue)
    assert.equal(message.metadata, metadata)
    assertTags(message.tags, tags)
  }),

  contractCase(
    'queues - purge removes waiting and delayed messages, and returns their number',
    async ({ engine, channel }) => {
      const queue = channel('purge')
      await sendAll(engine, queue, numbered(5))
      await engine.queues.send(queue, queued('delayed', { delayMs: 150 }))
      assert.equal(await engine.queues.purge(queue), 6)
      assert.deepEqual(await receive(engine, queue, { waitMs: 400 }), [])
      assert.equal(await engine.queues.purge(queue), 0)
    },
  ),

  contractCase('queues - purge keeps leased messages', async ({ engine, channel }) => {
    const queue = channel('purge-leased')
    await sendAll(engine, queue, ['kept', 'acked', 'gone'])
    const [kept, acked] = await receiveMany(engine, queue, 2)
    assert.ok(kept && acked)
    assert.equal(await engine.queues.purge(queue), 1)
    assert.equal((await engine.queues.ack([acked.receipt], CONSUMER)).settled, 1)
    assert.equal((await engine.queues.nack([kept.receipt], CONSUMER)).settled, 1)
    assert.equal(text((await receiveOne(engine, queue, { leaseMs: LONG_LEASE_MS })).message), 'kept')
    await assertNothingDue(engine, queue)
  }),

  contractCase('queues - a purged queue works and continues its sequences', async ({ engine, channel }) => {
    const queue = channel('purge-goes-on')
    await sendAll(engine, queue, numbered(3))
    await engine.queues.purge(queue)
    const { sequence } = await engine.queues.send(queue, queued('next'))
    assert.equal(sequence, 4)
    assert.equal(text((await receiveOne(engine, queue)).message), 'next')
  }),

  // ── Peek, which does not change the queue ──

  contractCase('queues - peek shows the next messages and changes nothing', async ({ engine, channel }) => {
    const queue = channel('peek')
    await engine.queues.send(queue, queued('first', { metadata: 'm', tags: { t: '1' }, id: 'the-id' }))
    await engine.queues.send(queue, queued('second'))
    for (let again = 0; again < 3; again += 1) {
      const shown = await engine.queues.peek(queue, { maxMessages: 10 })
      assert.deepEqual(texts(shown), ['first', 'second'])
      assert.deepEqual(
        shown.map(({ sequence }) => sequence),
        [1, 2],
      )
      const [message] = shown
      assert.ok(message)
      assert.equal(message.receiveCount, 0)
      assert.equal(message.id, 'the-id')
      assert.equal(message.metadata, 'm')
      assert.deepEqual({ ...message.tags }, { t: '1' })
      assert.equal(message.channel, queue)
    }
    const { message } = await receiveOne(engine, queue)
    assert.equal(text(message), 'first')
    assert.equal(message.receiveCount, 1, 'a peek does not count as a receive')
  }),

  contractCase('queues - peek shows no more than maxMessages, and about maxBytes', async ({ engine, channel }) => {
    const queue = channel('peek-max')
    await engine.queues.sendBatch(
      queue,
      numbered(5).map((body) => queued(body.padEnd(1_000, '.'))),
    )
    assert.deepEqual(starts(texts(await engine.queues.peek(queue, { maxMessages: 3 }))), numbered(3))
    assert.deepEqual(starts(texts(await engine.queues.peek(queue, { maxMessages: 5, maxBytes: 10 }))), ['m1'])
    const { length } = await engine.queues.peek(queue, { maxMessages: 5, maxBytes: 2_500 })
    assert.ok(length === 2 || length === 3, `about 2,500 bytes, not ${length} messages`)
  }),

  contractCase('queues - peek from a sequence shows that message and later ones', async ({ engine, channel }) => {
    const queue = channel('peek-from')
    await sendAll(engine, queue, ['a', 'b', 'c', 'd'])
    const [, b, , d] = await engine.queues.peek(queue, { maxMessages: 10 })
    assert.ok(b && d)
    const from = (fromSequence: number, maxMessages: number): Promise<string[]> =>
      engine.queues.peek(queue, { maxMessages, fromSequence }).then(texts)
    assert.deepEqual(await from(b.sequence, 2), ['b', 'c'])
    assert.deepEqual(await from(b.sequence, 10), ['b', 'c', 'd'])
    assert.deepEqual(await from(d.sequence, 10), ['d'])
    assert.deepEqual(await from(d.sequence + 1, 10), [])
    assert.deepEqual(await from(1, 1), ['a'])
  }),

  contractCase('queues - peek of a queue that does not exist shows no messages', async ({ engine, channel }) => {
    const queue = channel('peek-missing')
    assert.deepEqual(await engine.queues.peek(queue, { maxMessages: 10 }), [])
    assert.equal(await engine.channels.info('queues', queue), undefined)
  }),

  contractCase('queues - peek shows neither delayed nor expired messages', async ({ engine, channel }) => {
    const queue = channel('peek-due')
    await engine.queues.send(queue, queued('delayed', { delayMs: 60_000 }))
    await engine.queues.send(queue, queued('expired', { expirationMs: 60 }))
    await engine.queues.send(queue, queued('due'))
    await pause(150)
    assert.deepEqual(texts(await engine.queues.peek(queue, { maxMessages: 10 })), ['due'])
  }),

  contractCase('queues - peek shows the receive count of a redelivered message', async ({ engine, channel }) => {
    const queue = channel('peek-count')
    await sendAll(engine, queue, ['x'])
    const { receipt } = await receiveOne(engine, queue)
    await engine.queues.nack([receipt], CONSUMER)
    await eventually(async () => {
      const [message] = await engine.queues.peek(queue, { maxMessages: 1 })
      assert.ok(message, 'the message is available again')
      assert.equal(message.receiveCount, 1)
    })
  }),

  contractCase('queues - peek does not show acked messages', async ({ engine, channel }) => {
    const queue = channel('peek-acked')
    await sendAll(engine, queue, ['x', 'y'])
    const { receipt } = await receiveOne(engine, queue)
    await engine.queues.ack([receipt], CONSUMER)
    await eventually(async () => {
      assert.deepEqual(texts(await engine.queues.peek(queue, { maxMessages: 10 })), ['y'])
    })
  }),
]
