import type { OutgoingMessage } from '@signalbox/broker-core'
import type { QueueSend } from '@signalbox/broker-core/engine'
import { decodeText, encodeText } from '@signalbox/broker-core'
import { randomUUID } from 'node:crypto'

export const CLIENT = 'a-client'

export function outgoing(body: string, more: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return { id: randomUUID(), clientId: CLIENT, body: encodeText(body), metadata: '', tags: {}, ...more }
}

export function queued(body: string, more: Partial<QueueSend> = {}): QueueSend {
  return { ...outgoing(body), delayMs: 0, expirationMs: 0, maxReceiveCount: 0, deadLetterQueue: '', ...more }
}

export function text({ body }: { readonly body: Uint8Array }): string {
  return decodeText(body) ?? ''
}

/** What receives in these tests ask for unless they say otherwise. */
export const RECEIVE = { maxMessages: 1, waitMs: 10_000, leaseMs: 60_000, clientId: CLIENT }
