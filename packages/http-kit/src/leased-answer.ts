import type { QueueDelivery, QueueReceiveInput, Queues } from '@signalbox/broker-core'

import type { Settlement } from './settlements.ts'

/**
 * Lease of the messages in a destructive read, in ms. Answering and settling takes well under a second; the rest is
 * for an overloaded server. Messages whose lease ends first are delivered again.
 */
export const ANSWER_LEASE_MS = 90_000

/**
 * Leases messages for an answer. If the signal is aborted while messages arrive, they are rejected (nack) and keep
 * their positions.
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

/** Returns the settlement of the messages in the answer to a destructive read; `undefined` for no messages. */
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
