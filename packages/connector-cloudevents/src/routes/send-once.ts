import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

import { BrokerError, encodeText, isBrokerError } from '@signalbox/broker-core'
import type { BrokerErrorCode, MessageInput, Reply } from '@signalbox/broker-core'
import { digestOf, IDEMPOTENCY_KEY_FORM, isIdempotencyKey, shownText } from '@signalbox/broker-core/internal'
import type {
  ClaimedKey,
  IdempotencyKeys,
  KeyedContent,
  KeyedRequest,
  KeyRecord,
} from '@signalbox/broker-core/internal'
import { CallEnded } from '@signalbox/http-kit'
import type { HttpRequest } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { CeError } from '../errors.ts'
import { FORMS_TAG } from '../event/event-tags.ts'

const HEADER = 'Idempotency-Key'

/** The header of a request that runs once. */
export const KEY_HEADERS = Type.Object({
  [HEADER]: Type.Optional(
    Type.String({
      description:
        'Sends the request at most once: a repeat with the same key and event gets the answer of the first one, with the header `Idempotency-Replayed: true`.',
      minLength: 1,
      maxLength: 255,
    }),
  ),
})

/**
 * Returns the key of a request; `undefined` if it has none.
 * @param keeps `false` if this server keeps no keys. A key is then refused: its caller relies on it.
 * @throws CeError IDEMPOTENCY_KEY_INVALID
 */
export function idempotencyKeyOf({ headers }: HttpRequest, keeps: boolean): string | undefined {
  const key = headers['idempotency-key']
  if (key === undefined) return undefined
  if (!keeps) {
    const problem = `this server keeps no idempotency keys; send the request without the header ${HEADER}`
    throw new CeError('IDEMPOTENCY_KEY_INVALID', problem)
  }
  if (typeof key === 'string' && isIdempotencyKey(key)) return key
  throw new CeError(
    'IDEMPOTENCY_KEY_INVALID',
    `invalid header ${HEADER}: ${shownText(String(key))}; it must be ${IDEMPOTENCY_KEY_FORM}`,
    { allowed: IDEMPOTENCY_KEY_FORM },
  )
}

/** Tags that may differ in a repeat of an event, or that depend on its content mode. */
const VOLATILE_TAGS: ReadonlySet<string> = new Set(['ce_id', 'ce_time', 'ce_traceparent', 'ce_tracestate', FORMS_TAG])

/** JSON is the content type of an event without one (CloudEvents JSON format 3.1). */
const DEFAULTS = { ce_datacontenttype: 'application/json' }

/** Returns the digest of an event's attributes and data. Its `id`, its `time` and its content mode do not count. */
export function eventDigest({ body, tags }: MessageInput): string {
  const attributes = Object.entries({ ...DEFAULTS, ...tags })
    .filter(([tag]) => !VOLATILE_TAGS.has(tag))
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
  return digestOf(`${JSON.stringify(attributes)}\n${digestOf(body)}`)
}

/** The id and the time of the event that a reply becomes. */
export interface EventStamp {
  readonly id: string
  readonly timestamp: number
}

/** Returns a new id and the current time. */
export function newStamp(): EventStamp {
  return { id: randomUUID(), timestamp: Date.now() }
}

export interface SendOnceOptions {
  readonly keys: IdempotencyKeys
  readonly request: KeyedRequest
  /** The maximum time to wait for the answer, in ms. */
  readonly timeoutMs: number
  /** Ends the wait for the answer of an earlier request. */
  readonly signal: AbortSignal
  /** Sends the request. A request that no responder received rejects with the reason of the signal. */
  readonly send: (timeoutMs: number) => Promise<Reply>
  /** Receives failures to record an outcome. */
  readonly failed: (error: unknown) => void
}

/** The reply to a request, and the stamp of the event that it becomes. */
interface StampedReply {
  readonly reply: Reply
  readonly stamp: EventStamp
}

/** The reply to a request that runs once. */
interface OnceReply extends StampedReply {
  /** `true` if an earlier request got it. */
  readonly replayed: boolean
}

/** Time after the end of a request in which its outcome may still be recorded, by clocks that differ, in ms. */
const MARGIN_MS = 10_000

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000

/**
 * Sends a request unless an earlier one has its key. Then it waits for the answer of the earlier one. Sends it if the
 * earlier one did not reach a responder.
 * @throws CeError IDEMPOTENCY_KEY_REUSED, OUTCOME_UNKNOWN; BrokerError as `send`, REQUEST_TIMEOUT, ENGINE_UNAVAILABLE
 */
export async function sendOnce(options: SendOnceOptions): Promise<OnceReply> {
  const { keys, request, timeoutMs, signal } = options
  const end = Date.now() + timeoutMs
  let earlier: KeyRecord | undefined
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    if (earlier === undefined) {
      const claimed = await keys.claim(request, randomUUID(), end)
      if ('release' in claimed) {
        return { ...(await sendClaimed(claimed, Math.max(end - Date.now(), 1), options)), replayed: false }
      }
      earlier = claimed
    }
    if (earlier.digest !== request.digest) {
      throw new CeError(
        'IDEMPOTENCY_KEY_REUSED',
        `the idempotency key ${shownText(request.key)} belongs to a request with another event; use a new key for a new request`,
      )
    }
    if (earlier.answer !== undefined) return { ...replyIn(earlier.answer), replayed: true }
    const now = Date.now()
    const over = (earlier.until ?? earlier.timestamp) + MARGIN_MS
    if (now >= over) throw outcomeUnknown('the earlier request with this idempotency key has no recorded answer')
    if (now >= end) {
      throw new BrokerError(
        'REQUEST_TIMEOUT',
        `the earlier request with this idempotency key had no answer within ${timeoutMs / 1000} s; repeat the request to get its answer`,
        { timeoutMs },
      )
    }
    await delay(Math.min(pauseMs, end - now, over - now), undefined, { signal }).catch(() => signal.throwIfAborted())
    earlier = await keys.find(request)
  }
}

/** The errors of a request that no responder received. */
const UNSENT: ReadonlySet<BrokerErrorCode> = new Set([
  'ARGUMENT_INVALID',
  'CHANNEL_INVALID',
  'CHANNEL_RESERVED',
  'FORBIDDEN',
  'CHANNEL_LIMIT',
  'CALLER_LIMIT',
  'MESSAGE_INVALID',
  'MESSAGE_TOO_LARGE',
  'SCHEMA_MISMATCH',
  'SETTING_UNSUPPORTED',
  'NO_SUBSCRIBER',
])

/** Sends a request, and records its outcome before the caller gets it. */
async function sendClaimed(
  claimed: ClaimedKey,
  timeoutMs: number,
  { send, failed }: SendOnceOptions,
): Promise<StampedReply> {
  try {
    const stamped = { reply: await send(timeoutMs), stamp: newStamp() }
    // The caller gets the answer even if it cannot be recorded: the request was executed.
    await claimed.answer(contentOf(stamped)).catch(failed)
    return stamped
  } catch (error) {
    if (error instanceof CallEnded || (isBrokerError(error) && UNSENT.has(error.code))) {
      await claimed.release().catch(failed)
    } else if (isBrokerError(error, 'REQUEST_TIMEOUT')) {
      await claimed.answer({ body: '', tags: { outcome: 'timeout' } }).catch(failed)
    }
    throw error
  }
}

/** The largest reply that is kept, in bytes of its body and characters of its texts: all callers share the store. */
const MAX_KEPT_BYTES = 262_144

/** Separates the tags of a reply from others. */
const REPLY_TAG = 'reply:'

/** Returns the record of a reply. A large reply is not kept; its request is not sent again either. */
function contentOf({ reply, stamp: { id, timestamp } }: StampedReply): KeyedContent {
  const { body, metadata, tags, executed, error } = reply
  let bytes = body.byteLength + metadata.length + error.length
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(tags)) {
    bytes += name.length + value.length
    kept[REPLY_TAG + name] = value
  }
  if (bytes > MAX_KEPT_BYTES) return { body: '', tags: { outcome: 'large', bytes: String(bytes) } }
  const outcome = executed ? 'executed' : 'rejected'
  return { body, metadata, tags: { ...kept, outcome, error, id, timestamp: String(timestamp) } }
}

/** @throws CeError OUTCOME_UNKNOWN */
function replyIn({ body, metadata = '', tags = {} }: KeyedContent): StampedReply {
  const { outcome, error = '', id = '', timestamp, bytes } = tags
  if (outcome === 'large') {
    throw outcomeUnknown(
      `the earlier request with this idempotency key was answered, and its answer of ${bytes} bytes was too large to be kept (the limit is ${MAX_KEPT_BYTES})`,
    )
  }
  if (outcome !== 'executed' && outcome !== 'rejected') {
    throw outcomeUnknown('the earlier request with this idempotency key timed out')
  }
  const own = Object.entries(tags).filter(([name]) => name.startsWith(REPLY_TAG))
  return {
    reply: {
      executed: outcome === 'executed',
      error,
      body: typeof body === 'string' ? encodeText(body) : body,
      metadata,
      tags: Object.fromEntries(own.map(([name, value]) => [name.slice(REPLY_TAG.length), value])),
    },
    stamp: { id, timestamp: Number(timestamp) },
  }
}

function outcomeUnknown(reason: string): CeError {
  return new CeError(
    'OUTCOME_UNKNOWN',
    `${reason}; it may have been executed, so it is not sent again. To send it again, use a new key`,
  )
}
