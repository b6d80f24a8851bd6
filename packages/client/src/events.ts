import { callSignal } from './client-context.ts'
import type { Message } from './cloud-event.ts'
import { contentOf, eventText, messageOf, objectOf, parsed } from './cloud-event.ts'
import { callCe, eventCall } from './http-calls.ts'
import type { MessageOptions } from './send.ts'
import type { SubscribeOptions, Subscription } from './subscription.ts'
import { isFinal, subscribe } from './subscription.ts'
import type { TypedChannel } from './typed-channel.ts'

/** Events that a subscriber has missed, or may have missed. */
export interface Gap {
  /** `reconnected`: events may have been published while the connection was down. `slow`: the server dropped events. */
  readonly reason: 'reconnected' | 'slow'
  /** The number of dropped events, if it is known. */
  readonly dropped: number | undefined
}

export interface EventsOptions extends SubscribeOptions {
  /** Reports events that were missed: they are not stored. Use a store where that matters. */
  readonly onGap?: ((gap: Gap) => void) | undefined
}

/** Events: each one goes to the current subscribers. */
export class Events<Output = unknown, Input = Output> {
  readonly #channel: TypedChannel<Output, Input>

  /** @internal */
  constructor(channel: TypedChannel<Output, Input>) {
    this.#channel = channel
  }

  /** Publishes an event. A broken connection is an error: the event may have been published. */
  async publish(data: Input, options: MessageOptions = {}): Promise<void> {
    await this.#channel.check(data)
    const { id = crypto.randomUUID(), type = this.#channel.context.type, contentType, signal } = options
    const attributes = { id, type, source: this.#channel.context.source, channel: this.#channel.name }
    const body = eventText(attributes, contentOf(data, contentType))
    await callCe(
      this.#channel.context.transport,
      eventCall('/ce/send/event', body, {}, callSignal(this.#channel.context, signal)),
    )
  }

  /**
   * Subscribes. The channel may be a pattern: `*` is one part of a name, a last `>` one or more. The handler gets one
   * event at a time.
   */
  on(handler: (event: Message<Output>) => unknown, options: EventsOptions = {}): Subscription {
    const { group, onGap, onError = this.#channel.context.onError } = options
    return subscribe(this.#channel.context, options, {
      request: () => ({ path: '/ce/subscribe/events', query: { channel: this.#channel.name, group } }),
      received: async ({ data }) => {
        try {
          const message = messageOf(objectOf(parsed(data), 'an event'), this.#channel.name)
          await handler({ ...message, data: await this.#channel.decode(message.data) })
        } catch (error) {
          onError(error)
        }
      },
      reconnected: () => onGap?.({ reason: 'reconnected', dropped: undefined }),
      failed: (error) => {
        const dropped = Number(error.details['dropped'] ?? Number.NaN)
        if (error.code === 'SLOW_SUBSCRIBER')
          onGap?.({ reason: 'slow', dropped: Number.isNaN(dropped) ? undefined : dropped })
        else onError(error)
        return isFinal(error)
      },
    })
  }
}
