import type { Broker } from '@signalbox/broker-core'

import { text } from './management-server.ts'

export const SHOP = { clientId: 'shop' }

/** Sends messages to a queue, from which they move to the queue `dead`. */
export async function bury(broker: Broker, queue: string, bodies: readonly string[]): Promise<void> {
  const { queues } = broker.as(SHOP)
  await queues.sendBatch(
    queue,
    bodies.map((body) => ({ body: text(body), maxReceiveCount: 1, deadLetterQueue: 'dead' })),
  )
  const taken = await queues.receive(queue, { maxMessages: bodies.length })
  await queues.nack(taken.map(({ receipt }) => receipt))
}
