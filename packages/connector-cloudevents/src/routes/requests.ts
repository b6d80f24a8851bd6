import { randomUUID } from 'node:crypto'

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
import { addressAll } from './send.ts'

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
  needs: { action: 'send', types: ['queries'] },
  input: requestQuery(),
  run: (query, call) =>
    request('queries', query, call, 200, ({ channel, reply }) => ({
      message: 'query answered',
      data: longEventText('queries', {
        ...reply,
        channel,
        id: randomUUID(),
        clientId: '',
        timestamp: Date.now(),
      }).text,
    })),
})

async function request(
  type: RequestType,
  { channel: fallback, timeout }: { readonly channel?: string; readonly timeout?: number },
  { broker, events, signal, environment }: CeRouteCall,
  status: number,
  answered: (answer: { channel: string; reply: Reply }) => Pick<CeAnswer, 'message' | 'data'>,
): Promise<CeAnswer> {
  const [addressed] = addressAll(type, broker, events, fallback)
  if (addressed === undefined) throw new CeError('EVENT_INVALID', 'invalid CloudEvent: the request has no event')
  const { channel, message } = addressed
  const timeoutMs = Math.ceil((timeout ?? environment.options.timeoutSeconds) * 1000)
  const reply = await broker[type].send(channel, message, { timeoutMs, signal })
  if (reply.executed) return { status, ...answered({ channel, reply }) }
  return {
    status,
    rejected: true,
    message: `rejected by the subscriber: ${reply.error}`,
    data: JSON.stringify({ channel, executed: false, error: reply.error }),
  }
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
