import { decodeText } from '@signalbox/broker-core'
import type { Reply, RequestType } from '@signalbox/broker-core'
import { readJson } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { longEventText } from '../event/event-text.ts'
import type { CeAnswer } from '../ce-exchange.ts'
import { CeError } from '../errors.ts'
import { MAX_TIMEOUT_SECONDS } from '../options.ts'
import { ANSWERS } from './answers.ts'
import { defineCeRoute, eventChannel, STRICT } from './route.ts'
import type { CeRouteCall } from './route.ts'
import { addressAll, assertSendable } from './send.ts'
import { eventDigest, idempotencyKeyOf, KEY_HEADERS, newStamp, sendOnce } from './send-once.ts'
import type { EventStamp } from './send-once.ts'

function requestQuery() {
  return Type.Object(
    {
      channel: eventChannel(),
      timeout: Type.Optional(
        Type.Integer({
          description: 'Seconds to wait for the answer; 60 unless the server is configured otherwise.',
          minimum: 1,
          maximum: MAX_TIMEOUT_SECONDS,
        }),
      ),
    },
    STRICT,
  )
}

export const sendCommand = defineCeRoute({
  name: 'send/command',
  output: ANSWERS.command,
  method: 'POST',
  summary: 'Sends a command and waits until a responder has executed or rejected it.',
  body: 'event',
  headers: KEY_HEADERS,
  needs: { action: 'send', types: ['commands'] },
  input: requestQuery(),
  run: (query, call) =>
    request('commands', query, call, 202, ({ channel }) => ({
      message: 'command executed',
      data: JSON.stringify({ channel, executed: true }),
    })),
})

export const sendQuery = defineCeRoute({
  name: 'send/query',
  output: ANSWERS.query,
  method: 'POST',
  summary: 'Sends a query and returns the reply of a responder, as a CloudEvent.',
  body: 'event',
  headers: KEY_HEADERS,
  needs: { action: 'send', types: ['queries'] },
  input: requestQuery(),
  run: (query, call) =>
    request('queries', query, call, 200, ({ channel, reply, stamp = newStamp() }) => ({
      message: 'query answered',
      data: longEventText('queries', { ...reply, ...stamp, channel, clientId: '' }).text,
    })),
})

/** The reply to a request, and the stamp of the event that it becomes, if it has one already. */
interface Answered {
  readonly channel: string
  readonly reply: Reply
  readonly stamp?: EventStamp
}

async function request(
  type: RequestType,
  { channel: fallback, timeout }: { readonly channel?: string; readonly timeout?: number },
  { broker, events, exchange, signal, environment }: CeRouteCall,
  status: number,
  executed: (answered: Answered) => Pick<CeAnswer, 'message' | 'data'>,
): Promise<CeAnswer> {
  const { keys, options } = environment
  const key = idempotencyKeyOf(exchange.request, keys !== undefined)
  const [addressed] = addressAll(type, broker, events, fallback)
  if (addressed === undefined) throw new CeError('EVENT_INVALID', 'invalid CloudEvent: the request has no event')
  const { channel, message } = addressed
  const timeoutMs = Math.ceil((timeout ?? options.timeoutSeconds) * 1000)
  const answer = (answered: Answered): CeAnswer => {
    if (answered.reply.executed) return { status, ...executed(answered) }
    const { error } = answered.reply
    return {
      status,
      rejected: true,
      message: `rejected by the subscriber: ${error}`,
      data: JSON.stringify({ channel, executed: false, error }),
    }
  }
  if (key === undefined || keys === undefined) {
    return answer({ channel, reply: await broker[type].send(channel, message, { timeoutMs, signal }) })
  }
  // First, so that a caller without permission learns nothing about keys.
  assertSendable(type, broker, channel)
  const { reply, stamp, replayed } = await sendOnce({
    keys,
    request: { kind: type, target: channel, callerId: broker.caller.clientId, key, digest: eventDigest(message) },
    timeoutMs,
    signal,
    // A request that a responder received continues without its client, which may ask for the answer again.
    send: (leftMs) => broker[type].send(channel, message, { timeoutMs: leftMs, callerGone: signal }),
    failed: (error) => environment.failed(error, exchange.request),
  })
  return { ...answer({ channel, reply, stamp }), replayed }
}

export const sendResponse = defineCeRoute({
  name: 'send/response',
  output: ANSWERS.response,
  method: 'POST',
  summary: "Answers a command or query: the event's data is the reply, or with `is_error` the reason of a rejection.",
  body: 'event',
  needs: { action: 'respond', types: ['commands', 'queries'] },
  input: Type.Object(
    {
      request_id: Type.String({
        description: 'The `brokerrequestid` of the command or query.',
        minLength: 1,
        maxLength: 128,
      }),
      is_error: Type.Optional(Type.Boolean({ description: 'Rejects the command or query.', default: false })),
    },
    STRICT,
  ),
  async run({ request_id, is_error = false }, { events, identity, environment }) {
    const message = events[0]?.message
    if (message === undefined) throw new CeError('EVENT_INVALID', 'invalid CloudEvent: the request has no event')
    const reply = is_error ? { ...message, error: reasonOf(message.body) } : message
    const { pending, relay } = environment
    const { clientId } = identity
    const answered =
      pending.answer(request_id, clientId, reply) || ((await relay?.forward(request_id, clientId, reply)) ?? false)
    if (!answered) {
      throw new CeError(
        'REQUEST_UNKNOWN',
        'no request with this request_id waits for your answer: it was answered already, it timed out, its requester disconnected, your subscription ended, or another subscriber received it',
      )
    }
    return { status: 202, message: is_error ? 'request rejected' : 'request answered', data: 'null' }
  },
})

/** Returns the reason of a rejection: the data, if it is text. */
function reasonOf(body: Uint8Array): string {
  const text = decodeText(body) ?? ''
  const value = text.trimStart().startsWith('"') ? readJson(text)?.value : undefined
  const reason = typeof value === 'string' ? value : text
  return reason.trim() === '' ? 'the subscriber gave no reason' : reason
}
