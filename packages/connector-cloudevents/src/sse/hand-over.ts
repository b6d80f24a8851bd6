import type { ReplyInput, RequestMessage, RequestType } from '@signalbox/broker-core'

import type { AwaitedReply, PendingRequests } from '../pending-requests.ts'
import type { Feed } from './feed.ts'
import type { SseFrame } from './frames.ts'
import { requestFrame } from './frames.ts'

/** A subscriber of commands or queries. */
export interface RequestSubscriber {
  readonly feed: Feed
  readonly pending: PendingRequests
  /** What the ids of this node's requests begin with; undefined when answers count at this node only. */
  readonly node: string | undefined
  /** The principal that may answer. */
  readonly clientId: string
  /** Milliseconds after the end of the subscriber's stream in which its answer is still taken. */
  readonly graceMs: number
}

/**
 * Hands a request to the subscriber and waits for its answer, for as long as the requester waits. A subscriber whose
 * stream ends has some time to answer: clients close first, or connect again in the middle of their work.
 */
export function handOver(
  type: RequestType,
  what: string,
  request: RequestMessage,
  subscriber: RequestSubscriber,
): ReplyInput | Promise<ReplyInput> {
  const { feed, pending, node, clientId } = subscriber
  if (!feed.open || request.signal.aborted) return { error: 'the subscriber is gone' }
  const waiting = pending.add(clientId, node)
  const { id } = waiting
  const frame = requestFrame(type, request, { brokerrequestid: id, brokerreplychannel: `reply.${id}` })
  if (!feed.hasRoomFor(frame)) {
    waiting.forget()
    return { error: `the subscriber is too slow: it did not take the ${what}` }
  }
  feed.offer(frame)
  return answerTo(waiting, what, new WeakRef(frame), request.signal, subscriber)
}

/**
 * Waits for the answer. What waits, perhaps for an hour, keeps neither the request nor its frame: as long as the frame
 * has not been written the feed has it, and after that nobody asks for it.
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
      error: `the subscriber went away before it answered; it may have carried out the ${what} all the same`,
    })
  let grace: NodeJS.Timeout | undefined
  const idleAgain = feed.keepBusy()
  const offEnd = feed.onEnd(() => {
    const left = frame.deref()
    if (left !== undefined && feed.lost(left)) {
      resolve({ error: `the subscriber went away before it took the ${what}` })
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
