import type { SubscribeOptions } from '../engine/event-engine.ts'
import type { RequestOptions, RequestType } from '../engine/request-engine.ts'
import type { Subscription } from '../engine/subscription.ts'
import { isBrokerError } from '../errors.ts'
import type { MessageInput, Reply, RequestMessage } from '../message.ts'
import { encodeText } from '../message.ts'
import type { Observers } from '../observer.ts'
import { assertFunction, assertObject } from '../options.ts'
import { endWith } from '../tracing/message-spans.ts'
import type { Access } from './access.ts'
import { assertInteger, assertNotDurable } from './access.ts'

const NO_BODY = new Uint8Array(0)

/** The answer of a responder. Omitted fields are empty. */
export interface ReplyInput extends Partial<MessageInput> {
  /** The reason of a rejection. Set it to reject the request. */
  readonly error?: string | undefined
}

/** The commands, or the queries, as one caller sees them: a request to one responder, and its answer. */
export class Requests {
  readonly #access: Access
  readonly #type: RequestType

  constructor(access: Access, type: RequestType) {
    this.#access = access
    this.#type = type
  }

  /**
   * Sends a request and waits for the answer. Also waits for a first subscriber, unless `onlyIfSubscribed` is set. A
   * rejection is an answer: `executed` is false and `error` has the reason.
   * @throws BrokerError CHANNEL_*, CALLER_LIMIT, MESSAGE_*, SCHEMA_MISMATCH, NO_SUBSCRIBER, REQUEST_TIMEOUT, ENGINE_UNAVAILABLE
   */
  send(channel: string, input: MessageInput, options: RequestOptions): Promise<Reply> {
    const access = this.#access
    const span = access.spans?.send(channel, [input])
    const call = async (): Promise<Reply> => {
      access.channel('send', this.#type, channel)
      assertObject('options', options, 'an object with timeoutMs, such as { timeoutMs: 5000 }')
      assertInteger('timeoutMs', options.timeoutMs, 1)
      options.signal?.throwIfAborted()
      const message = access.message(input, span)
      span?.set({ 'messaging.message.id': message.id })
      access.body(this.#type, channel, message)
      const ended = access.beginWaiting()
      try {
        const reply = access.creating(this.#type, channel, () =>
          access.engine.requests.request(this.#type, channel, message, options),
        )
        access.observers.accepted(this.#type, channel, access.caller, message)
        if (access.observers.observesAnswers) reportAnswer(reply, access.observers, this.#type, channel, message.id)
        return ended === undefined ? reply : reply.finally(ended)
      } catch (error) {
        ended?.()
        throw error
      }
    }
    return access.run('send', this.#type, channel, call, span)
  }

  /**
   * Answers requests. Subscribers without a group form one group; each request goes to one subscriber of each group.
   */
  subscribe(
    channel: string,
    options: SubscribeOptions,
    handler: (request: RequestMessage) => ReplyInput | Promise<ReplyInput>,
  ): Promise<Subscription> {
    const access = this.#access
    return access.run('subscribe', this.#type, channel, async () => {
      access.channel('respond', this.#type, channel)
      assertObject('options', options, 'an object')
      assertFunction('handler', handler)
      assertNotDurable(options)
      options.signal?.throwIfAborted()
      return access.subscription('respond', this.#type, channel, options.group, () =>
        access.creating(this.#type, channel, () =>
          access.engine.requests.serve(this.#type, channel, options, (request) => {
            access.observers.delivered(this.#type, channel, access.caller, request)
            const span = access.spans?.process(channel, request)
            const reply = replyOf(handler(request))
            return span === undefined ? reply : endWith(span, reply, false)
          }),
        ),
      )
    })
  }
}

/** Reports the end of a request, in a function that does not reference the request, so that it is not kept in memory. */
function reportAnswer(
  reply: Promise<Reply>,
  observers: Observers,
  type: RequestType,
  channel: string,
  id: string,
): void {
  reply.then(
    ({ executed }) => observers.answered(type, channel, id, executed ? 'executed' : 'rejected'),
    (error: unknown) => observers.answered(type, channel, id, isBrokerError(error) ? error.code : 'INTERNAL'),
  )
}

/**
 * Waits for the answer in a function that does not reference the request, so that the request is not kept in memory.
 */
async function replyOf(answer: ReplyInput | Promise<ReplyInput>): Promise<Reply> {
  const { error = '', body = NO_BODY, metadata = '', tags = {} } = await answer
  return { executed: error === '', error, body: typeof body === 'string' ? encodeText(body) : body, metadata, tags }
}
