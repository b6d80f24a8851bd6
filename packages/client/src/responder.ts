import type { ClientContext } from './client-context.ts'
import type { Message } from './cloud-event.ts'
import { contentOf, eventText, messageOf, objectOf, parsed, textOf } from './cloud-event.ts'
import { argumentError, Reject } from './errors.ts'
import type { ErrorListener } from './report.ts'
import type { SubscribeOptions, Subscription } from './subscription.ts'
import { isFinal, subscribe } from './subscription.ts'
import { eventCall } from './send.ts'
import { callCe } from './ce-call.ts'

/** The kind of requests that a responder answers. */
export type RequestKind = 'commands' | 'queries'

export interface AnswerOptions extends SubscribeOptions {
  /** Requests that are handled at the same time. @default 16 */
  readonly concurrency?: number
}

/** The context of a request that a handler answers. */
export interface ReceivedRequest<T = unknown> extends Message<T> {
  /** Aborts when the subscription is closed. */
  readonly signal: AbortSignal
}

/** Returns the reply; for a command, the value is ignored. Throw a {@link Reject} to reject with a reason. */
export type AnswerHandler<T> = (data: T, request: ReceivedRequest<T>) => unknown

/** The reason of a rejection after an error that is not a {@link Reject}: its text may be secret. */
const FAILED = 'the responder failed'

/** Answers commands or queries. The handler runs for several requests at the same time. */
export function answerRequests<T>(
  context: ClientContext,
  kind: RequestKind,
  channel: string,
  decode: (data: unknown) => Promise<T>,
  handler: AnswerHandler<T>,
  options: AnswerOptions,
): Subscription {
  const { concurrency = 16, group, onError = context.onError } = options
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw argumentError('concurrency', concurrency, 'a whole number of at least 1')
  }
  const running = new Set<Promise<void>>()
  return subscribe(context, options, {
    request: () => ({ path: `/ce/subscribe/${kind}`, query: { channel, group } }),
    received: async ({ data }, signal) => {
      const event = objectOf(parsed(data), 'a request')
      const requestId = textOf(event['brokerrequestid']) ?? ''
      const answered = respond(context, requestId, channel, onError, async () => {
        const message = messageOf(event, channel)
        const decoded = await decode(message.data)
        return handler(decoded, { ...message, data: decoded, signal })
      }).finally(() => running.delete(answered))
      running.add(answered)
      if (running.size >= concurrency) await Promise.race(running)
    },
    failed: (error) => {
      onError(error)
      return isFinal(error)
    },
    settled: async () => {
      await Promise.all(running)
    },
  })
}

/** Runs the handler and sends the answer. Never rejects. */
async function respond(
  context: ClientContext,
  requestId: string,
  channel: string,
  onError: ErrorListener,
  run: () => Promise<unknown>,
): Promise<void> {
  let reply: unknown
  let rejected = false
  try {
    reply = await run()
  } catch (error) {
    rejected = true
    reply = error instanceof Reject ? error.message : FAILED
    if (!(error instanceof Reject)) onError(error)
  }
  try {
    await sendAnswer(context, requestId, channel, reply, rejected)
  } catch (error) {
    onError(error)
  }
}

async function sendAnswer(
  context: ClientContext,
  requestId: string,
  channel: string,
  reply: unknown,
  rejected: boolean,
): Promise<void> {
  const { source, type, transport } = context
  const body = eventText({ id: crypto.randomUUID(), source, type, channel }, contentOf(reply, undefined))
  const query = { request_id: requestId, ...(rejected ? { is_error: true } : {}) }
  // An answer is sent even while the client closes: the requester waits for it.
  const call = eventCall('/ce/send/response', body, query, new AbortController().signal)
  await callCe(transport, { ...call, repeatable: true })
}
