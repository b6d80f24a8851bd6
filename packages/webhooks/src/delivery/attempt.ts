import type { KeyObject } from 'node:crypto'

import { messageOf } from '@signalbox/broker-core/internal'
import type { SecretBox } from '@signalbox/http-kit'
import type { OpenRequests, OutboundTarget } from '@signalbox/http-kit/internal'

import type { EncodedDelivery, EndpointRequest, WebhookFormat } from '../format.ts'
import { signingKey } from '../secrets/signature.ts'
import type { Item } from '../sources/source.ts'
import type { KnownSubscription } from '../subscription/subscription-index.ts'
import type { EndpointClient } from './endpoint-client.ts'
import { askedPause, verdictOf } from './retry.ts'

/** The result of an attempt, for metrics. */
export type AttemptOutcome = 'delivered' | 'retry' | 'failed'

/** The result of an attempt. */
export interface Attempt {
  readonly verdict: ReturnType<typeof verdictOf>
  readonly reason: string
  readonly status?: number
  readonly answer?: string
  /** The pause that the endpoint asks for, in ms. */
  readonly pauseMs: number
}

const DELIVERED: Attempt = { verdict: 'delivered', reason: '', pauseMs: 0 }

export function outcomeOf({ verdict }: Attempt): AttemptOutcome {
  return verdict === 'delivered' || verdict === 'retry' ? verdict : 'failed'
}

/** A secret that signs until a time, in ms since the epoch. */
export interface OpenSecret {
  readonly key: KeyObject
  readonly untilMs: number
}

/** Returns the secrets of a subscription that the key of this server opens. */
export function openSecrets({ id, record }: KnownSubscription, box: SecretBox): readonly OpenSecret[] {
  const opened: OpenSecret[] = []
  for (const { sealed, untilMs = Infinity } of record.secrets) {
    const bytes = box.open(sealed, id)
    if (bytes !== undefined) opened.push({ key: signingKey(bytes), untilMs })
  }
  return opened
}

/** Returns the keys that sign at a time, in ms since the epoch. */
export function validAt(secrets: readonly OpenSecret[], nowMs: number): readonly KeyObject[] {
  return secrets.filter(({ untilMs }) => untilMs > nowMs).map(({ key }) => key)
}

/** Returns the id of a delivery, the same for each attempt. */
export function deliveryId(id: string, items: readonly Pick<Item, 'name'>[]): string {
  const [first, last] = [items[0]?.name ?? '', items.at(-1)?.name ?? '']
  return first === last ? `msg_${id}_${first}` : `msg_${id}_${first}-${last}`
}

/** Returns a delivery, or the attempt that stands for it if there is nothing to send. */
export function encode(
  format: WebhookFormat,
  { id, record: { type, notes = '' } }: KnownSubscription,
  items: readonly Item[],
): EncodedDelivery | Attempt {
  try {
    const messages = items.map(({ message }) => message)
    const encoded = format.encode(type, messages, { id, notes })
    // Without a delivery the endpoint is not to have the messages.
    return encoded ?? DELIVERED
  } catch (error) {
    return { verdict: 'refused', reason: `the message has no form for the endpoint: ${messageOf(error)}`, pauseMs: 0 }
  }
}

/** Sends a request to an endpoint, and judges its answer. Never rejects. */
export async function send(
  client: EndpointClient,
  target: OutboundTarget,
  request: EndpointRequest,
  open: OpenRequests,
): Promise<Attempt> {
  try {
    const { status, headers, text } = await client.send(target, request, open)
    const verdict = verdictOf(status)
    if (verdict === 'delivered') return DELIVERED
    const retryAfter = headers['retry-after']
    return {
      verdict,
      reason: `the endpoint answered ${status}`,
      status,
      answer: text,
      pauseMs: askedPause(typeof retryAfter === 'string' ? retryAfter : undefined, Date.now()),
    }
  } catch (error) {
    return { verdict: 'retry', reason: messageOf(error).slice(0, 200), pauseMs: 0 }
  }
}
