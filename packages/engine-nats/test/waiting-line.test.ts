import { expect, test } from 'vitest'

import type { Delivery } from '../src/queues/delivery.ts'
import { toRecord } from '../src/queues/queue-record.ts'
import { WaitingReceiver, WaitingLine } from '../src/queues/waiting-line.ts'
import { queued } from './support/messages.ts'

function delivery(sequence: number): Delivery {
  const options = { compacted: false, maxAgeMs: -1, maxBytes: -1 }
  return {
    channel: { type: 'queues', name: 'q', incarnation: 'i', stream: 's', options, revision: 1 },
    record: toRecord('q', queued('x'), Date.now()),
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

test('queues - a waiting line hands messages to who came first, and to each receiver one', () => {
  const line = lineInto([])
  const [first, second] = [new WaitingReceiver(), new WaitingReceiver()]
  line.join(first)
  line.join(second)
  line.join(first)
  for (const sequence of [3, 2, 1]) line.offer(delivery(sequence))
  expect([sequences(first.take()), sequences(second.take())]).toEqual([[3], [2]])
  expect(sequences(line.takeStash())).toEqual([1])
})

test('queues - what a receiver was handed and did not take goes to the next, or back', async () => {
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

test('queues - nobody is handed anything of a queue that closes', async () => {
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
