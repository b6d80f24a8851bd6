import type { ClientContext, ErrorListener } from './client-context.ts'
import { NO_TRACE } from './client-context.ts'
import type { Message } from './cloud-event.ts'
import { contentOf, eventText, messageOf, objectOf, parsed, asString } from './cloud-event.ts'
import { argumentError, Reject } from './errors.ts'
import { callCe, eventCall } from './http-calls.ts'

import type { SubscribeOptions, Subscription } from './subscription.ts'
import { isFinal, subscribe } from './subscription.ts'

/** The kind of requests that a responder answers. */
export type RequestKind = 'commands' | 'queries'

export interface AnswerOptions extends SubscribeOptions {
  /** Requests that are handled at the same time. @default 16 */
  readonly concurrency?: number | undefined
}

/** The context of a request that a handler answers. */
export interface ReceivedRequest<T = unknown> extends Message<T> {
  /** The time until which the requester waits for the answer. Undefined with a server that does not send it. */
  readonly deadline: Date | undefined
  /** Aborts when the subscription is closed, and at the deadline. */
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
      const requestId = asString(event['brokerrequestid']) ?? ''
      const message = messageOf(event, channel)
      const answer = async (): Promise<unknown> => {
        const decoded = await decode(message.data)
        const deadline = deadlineOf(event['brokerdeadline'])
        return handler(decoded, { ...message, data: decoded, deadline, signal: until(deadline, signal) })
      }
      const answered = context
        .runInTrace(message.trace ?? NO_TRACE, () => respond(context, requestId, channel, onError, answer))
        .finally(() => running.delete(answered))
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

function deadlineOf(value: unknown): Date | undefined {
  const date = new Date(asString(value) ?? '')
  return Number.isNaN(date.getTime()) ? undefined : date
}

/** Returns a signal that also aborts at the deadline. */
function until(deadline: Date | undefined, signal: AbortSignal): AbortSignal {
  if (deadline === undefined) return signal
  return AbortSignal.any([signal, AbortSignal.timeout(Math.max(0, deadline.getTime() - Date.now()))])
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
  const query = { request_id: requestId, is_error: rejected ? true : undefined }
  // An answer is sent even while the client closes: the requester waits for it.
  const call = eventCall('/ce/send/response', body, query, new AbortController().signal)
  await callCe(transport, { ...call, repeatable: true })
}
