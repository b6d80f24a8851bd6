import type { KeyObject } from 'node:crypto'
import { randomUUID } from 'node:crypto'

import type { Message } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import type {
  EncodedDelivery,
  EndpointRequest,
  WebhookFormat,
  WebhookSource,
  WebhookType,
} from '@signalbox/broker-core/ports'
import { RUN_SOURCE } from '@signalbox/broker-core/ports'
import { messageOf } from '@signalbox/broker-core/internal'
import type { SecretBox } from '@signalbox/http-kit/internal'
import type { OpenRequests, OutboundTarget } from '@signalbox/http-kit/internal'

import type { EndpointPolicy } from '../safety/endpoint-policy.ts'
import { signedHeaders, signingKey } from '../signature.ts'
import type { Item } from '../sources/source.ts'
import type { KnownSubscription } from '../subscription/stored-subscriptions.ts'
import type { EndpointClient } from './endpoint-client.ts'

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

/** Returns the secret notes of a subscription; empty if it has none, undefined if the key does not open them. */
export function openNotes({ id, record: { sealedNotes } }: KnownSubscription, box: SecretBox): string | undefined {
  if (sealedNotes === undefined) return ''
  const bytes = box.open(sealedNotes, notesPlace(id))
  return bytes && decodeText(bytes)
}

/** Returns the place for which the secret notes of a subscription are sealed. */
export function notesPlace(id: string): string {
  return `${id} notes`
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

/** Returns the type of a subscription's messages, for a format. */
function messageType(type: WebhookType): WebhookSource {
  return type === RUN_SOURCE ? 'events' : type
}

/** Encodes a delivery. Returns the attempt's result instead if there is nothing to send. */
export function encode(
  format: WebhookFormat,
  { id, record: { type, notes = '' } }: KnownSubscription,
  items: readonly Item[],
  secretNotes: string,
): EncodedDelivery | Attempt {
  try {
    const messages = items.map(({ message }) => message)
    const encoded = format.encode(messageType(type), messages, { id, notes, secretNotes })
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
    if (verdict === 'delivered') return { ...DELIVERED, status }
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

/** The answer of an endpoint to a test. */
export interface TestResult {
  /** The status of the answer; `undefined` without one. */
  readonly status?: number
  /** The reason for a failed test. */
  readonly error?: string
}

interface Parts {
  readonly box: SecretBox
  readonly policy: EndpointPolicy
  readonly client: EndpointClient
}

/** Sends a test message to the endpoint of a subscription, signed as a delivery. Never rejects. */
export async function sendTest(
  known: KnownSubscription,
  format: WebhookFormat,
  { box, policy, client }: Parts,
): Promise<TestResult> {
  const { id, record } = known
  const testId = `test_${randomUUID()}`
  const message: Message = {
    id: testId,
    clientId: record.owner,
    channel: record.channel,
    timestamp: Date.now(),
    body: encodeText('{"test":true}'),
    metadata: '',
    tags: {},
  }
  const secretNotes = openNotes(known, box) ?? ''
  const encoded = format.encode(messageType(record.type), [message], { id, notes: record.notes ?? '', secretNotes })
  if (encoded === undefined) return { error: 'the format has no form for a test message' }
  const { headers, body, unsigned } = encoded
  const now = Date.now()
  try {
    const keys = unsigned === true ? [] : validAt(openSecrets(known, box), now)
    const signed = signedHeaders(keys, testId, now, body)
    const url = await policy.check(record.endpoint, record.account)
    const request = { method: 'POST', headers: { ...headers, ...signed }, body } as const
    const { status } = await client.send(client.to(url.href), request)
    return { status }
  } catch (error) {
    return { error: messageOf(error) }
  }
}

/** The first and the longest pause between two attempts, in ms. */
const FIRST_MS = 1_000
const LONGEST_MS = 300_000

/** The longest pause that an endpoint can ask for, in ms. */
const LONGEST_ASKED_MS = 3_600_000

/** Answers with these statuses are tried again; other statuses of 4xx are final for the message. */
const TEMPORARY: ReadonlySet<number> = new Set([408, 425, 429])

/** The result of an attempt: `gone` ends the subscription, `refused` ends the attempts for the message. */
type Verdict = 'delivered' | 'gone' | 'refused' | 'retry'

/** Returns the verdict on an answer. A redirect is not followed; its message is tried again. */
function verdictOf(status: number): Verdict {
  if (status >= 200 && status <= 299) return 'delivered'
  if (status === 410) return 'gone'
  if (status >= 400 && status <= 499 && !TEMPORARY.has(status)) return 'refused'
  return 'retry'
}

/** Returns the pause after the failed attempt with this number, from 0, in ms: exponential, with jitter. */
export function pauseAfter(attempt: number, random = Math.random()): number {
  const full = Math.min(FIRST_MS * 2 ** Math.min(attempt, 20), LONGEST_MS)
  return Math.round(full * (0.5 + random / 2))
}

/** Returns the pause that `Retry-After` asks for, in ms: seconds, or a date; 0 without a valid value. */
function askedPause(header: string | undefined, now: number): number {
  if (header === undefined || header.length > 64) return 0
  const text = header.trim()
  const ms = /^\d{1,10}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LONGEST_ASKED_MS) : 0
}
