import type { ReplyInput, RequestMessage, RequestType } from '@signalbox/broker-core'

import type { AwaitedReply, PendingRequests } from '@signalbox/http-kit/internal'
import type { Feed } from './feed.ts'
import type { SseFrame } from './frames.ts'
import { requestFrame } from './frames.ts'

/** A subscriber of commands or queries. */
interface RequestSubscriber {
  readonly feed: Feed
  readonly pending: PendingRequests
  /** The prefix of the ids of this node's requests; `undefined` if answers are accepted at this node only. */
  readonly node: string | undefined
  /** The principal that may answer. */
  readonly clientId: string
  /** Time after the end of the subscriber's stream in which its answers are accepted, in ms. */
  readonly graceMs: number
}

/**
 * Passes a request to the subscriber and waits for its answer, as long as the requester waits. A subscriber whose
 * stream has ended may still answer for some time: clients close first, or reconnect during their work.
 */
export function handOver(
  type: RequestType,
  what: string,
  request: RequestMessage,
  subscriber: RequestSubscriber,
): ReplyInput | Promise<ReplyInput> {
  const { feed, pending, node, clientId } = subscriber
  if (!feed.open || request.signal.aborted) return { error: 'the subscriber disconnected' }
  const waiting = pending.add(clientId, node)
  const { id } = waiting
  const frame = requestFrame(type, request, {
    brokerrequestid: id,
    brokerreplychannel: `reply.${id}`,
    brokerdeadline: new Date(request.deadline).toISOString(),
  })
  if (!feed.hasRoomFor(frame)) {
    waiting.forget()
    return { error: `the subscriber is too slow: it did not read the ${what}` }
  }
  feed.offer(frame)
  return answerTo(waiting, what, new WeakRef(frame), request.signal, subscriber)
}

/**
 * Waits for the answer, perhaps for an hour. Keeps neither the request nor its frame in memory: the feed has the
 * frame until it is written, and afterwards it is not needed.
 */
async function answerTo(
  waiting: AwaitedReply,
  what: string,
  frame: WeakRef<SseFrame>,
  requester: AbortSignal,
  { feed, graceMs }: RequestSubscriber,
): Promise<ReplyInput> {
  const { promise: gone, resolve } = Promise.withResolvers<ReplyInput>()
  const unanswered = (): void =>
    resolve({
      error: `the subscriber disconnected before it answered; it may have executed the ${what}`,
    })
  let grace: NodeJS.Timeout | undefined
  const idleAgain = feed.keepBusy()
  const offEnd = feed.onEnd(() => {
    const left = frame.deref()
    if (left !== undefined && feed.lost(left)) {
      resolve({ error: `the subscriber disconnected before it received the ${what}` })
    } else if (!feed.answersWanted) unanswered()
    else grace = setTimeout(unanswered, graceMs).unref()
  })
  requester.addEventListener('abort', unanswered, { once: true })
  try {
    return await Promise.race([waiting.reply, gone])
  } finally {
    waiting.forget()
    idleAgain()
    offEnd()
    clearTimeout(grace)
    requester.removeEventListener('abort', unanswered)
  }
}
