import { expect, test } from 'vitest'

import type { Delivery } from '../src/queues/delivery.ts'
import { toRecord } from '../src/queues/queue-sender.ts'
import { WaitingReceiver, WaitingLine } from '../src/queues/waiting-line.ts'
import { queued } from './support/messages.ts'

function delivery(sequence: number): Delivery {
  const options = { compacted: false, maxAgeMs: -1, maxBytes: -1 }
  return {
    channel: { type: 'queues', name: 'q', incarnation: 'i', stream: 's', options, revision: 1 },
    record: toRecord(queued('x'), Date.now()),
    sequence,
    delivery: sequence,
    ackSubject: '',
    timestamp: Date.now(),
    receiveCount: 1,
    uncounted: 0,
    recorded: false,
    size: 1,
    arrivedAt: Date.now(),
  }
}

function lineInto(returned: number[]): WaitingLine {
  return new WaitingLine(
    async ({ sequence }) => void returned.push(sequence),
    (work) => void work,
  )
}

function sequences(deliveries: readonly Delivery[]): number[] {
  return deliveries.map(({ sequence }) => sequence)
}

test('queues - a waiting line delivers messages in order of arrival, one to each receiver', () => {
  const line = lineInto([])
  const [first, second] = [new WaitingReceiver(), new WaitingReceiver()]
  line.join(first)
  line.join(second)
  line.join(first)
  for (const sequence of [3, 2, 1]) line.offer(delivery(sequence))
  expect([sequences(first.take()), sequences(second.take())]).toEqual([[3], [2]])
  expect(sequences(line.takeStash())).toEqual([1])
})

test('queues - a message that its receiver does not accept goes to the next one, or returns', async () => {
  const returned: number[] = []
  const line = lineInto(returned)
  const [first, second] = [new WaitingReceiver(), new WaitingReceiver()]
  line.join(first)
  line.offer(delivery(1))
  line.join(second)
  line.leave(first)
  await second.arrival
  expect(sequences(second.take())).toEqual([1])
  line.offer(delivery(2))
  line.leave(second)
  await line.returnStash()
  expect(returned).toEqual([2])
})

test('queues - no receiver gets a message of a closing queue', async () => {
  const returned: number[] = []
  const line = lineInto(returned)
  const receiver = new WaitingReceiver()
  line.join(receiver)
  line.close()
  line.offer(delivery(1))
  expect(receiver.waits).toBe(true)
  await line.returnStash()
  expect(returned).toEqual([1])
})
