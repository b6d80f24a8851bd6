import type { QueueDelivery, QueueReceiveInput, Queues } from '@signalbox/broker-core'

import type { Settlement } from './settlements.ts'

/**
 * How long messages stay on lease while a destructive read is answered and settled, in milliseconds. That takes well under
 * a second (M14); the rest is for a server that is short of time. Should it end first, they are delivered again.
 */
export const ANSWER_LEASE_MS = 90_000

/**
 * Leases messages for an answer. When the signal is aborted at the very moment that some came, they go back to their places.
 * @throws the signal's reason when it is aborted; BrokerError
 */
export async function leaseForAnswer(
  queues: Queues,
  channel: string,
  input: QueueReceiveInput & { readonly signal: AbortSignal },
): Promise<readonly QueueDelivery[]> {
  const deliveries = await queues.receive(channel, input)
  if (!input.signal.aborted) return deliveries
  if (deliveries.length > 0) await queues.nack(receiptsOf(deliveries))
  throw input.signal.reason
}

/** What becomes of the messages in the answer to a destructive read; undefined when there are none. */
export function settlementOf(queues: Queues, deliveries: readonly QueueDelivery[]): Settlement | undefined {
  if (deliveries.length === 0) return undefined
  const receipts = receiptsOf(deliveries)
  return {
    async commit() {
      await queues.ack(receipts)
    },
    async rollback() {
      await queues.nack(receipts)
    },
  }
}

function receiptsOf(deliveries: readonly QueueDelivery[]): string[] {
  return deliveries.map(({ receipt }) => receipt)
}
