import type { ClientContext } from '../client-context.ts'
import { callSignal } from '../client-context.ts'
import { isObject, messageOf, objectOf, textOf } from '../cloud-event.ts'
import type { Message } from '../cloud-event.ts'
import { callCe } from '../ce-call.ts'

/** Added to the time that the server waits, in ms: the time-out of the client's own request. */
const MARGIN_MS = 5000

/** One message of an answer of `queue/receive`. */
export interface Delivery {
  readonly message: Message
  readonly receives: number
  readonly receipt: string
}

export interface ReceiveCall {
  readonly channel: string
  readonly max: number
  readonly waitSeconds: number
  /** The lease in seconds; `undefined` to peek. */
  readonly leaseSeconds: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Receives messages with a lease, or peeks. Returns no messages if none came in time. */
export async function receiveMessages(
  context: ClientContext,
  { channel, max, waitSeconds, leaseSeconds, signal }: ReceiveCall,
): Promise<readonly Delivery[]> {
  const { data } = await callCe(context.transport, {
    method: 'POST',
    path: '/ce/queue/receive',
    query: {
      channel,
      max_messages: max,
      wait_timeout: waitSeconds,
      ...(leaseSeconds === undefined ? { is_peek: true } : { visibility_seconds: leaseSeconds }),
    },
    waitMs: waitSeconds * 1000 + MARGIN_MS,
    // A repeat may lease other messages; those of the lost answer come again after their lease.
    repeatable: true,
    signal: callSignal(context, signal),
  })
  const list = objectOf(data, 'the answer of queue/receive')['messages']
  return (Array.isArray(list) ? list : []).filter(isObject).map((each) => ({
    message: messageOf(objectOf(each['event'], 'a received event'), channel),
    receives: Number(each['receive_count'] ?? 0),
    receipt: textOf(each['receipt']) ?? '',
  }))
}
