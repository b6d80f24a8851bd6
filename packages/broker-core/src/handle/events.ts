import { isWildcardPattern } from '../channel.ts'
import type { SubscribeOptions } from '../engine/event-engine.ts'
import type { Subscription } from '../engine/subscription.ts'
import type { Message, MessageInput } from '../message.ts'
import { assertFunction, assertObject } from '../options.ts'
import { routeMessage } from '../routing/route.ts'
import type { Access } from './access.ts'
import { assertNotDurable } from './access.ts'

/** The events as one caller sees them: current subscribers get them, and nothing is stored. */
export class Events {
  readonly #access: Access

  constructor(access: Access) {
    this.#access = access
  }

  /** Publishes an event to the current subscribers. @throws BrokerError CHANNEL_*, MESSAGE_*, SCHEMA_MISMATCH, ENGINE_UNAVAILABLE */
  publish(channel: string, input: MessageInput): Promise<{ readonly id: string }> {
    const access = this.#access
    const span = access.spans?.send(channel, [input])
    const call = async (): Promise<{ readonly id: string }> => {
      access.channel('send', 'events', channel)
      const message = access.message(input, span)
      access.body('events', channel, message)
      await access.creating('events', channel, () => access.engine.events.publish(channel, message))
      access.observers.accepted('events', channel, access.caller, message)
      if (access.routing?.active) {
        const { id } = message
        const accepted = { type: 'events', channel, message, id, duplicate: false, span } as const
        await routeMessage(access.routing.table, access, accepted)
      }
      span?.set({ 'messaging.message.id': message.id })
      return { id: message.id }
    }
    return access.run('send', 'events', channel, call, span)
  }

  /**
   * Subscribes to a channel, or to several by a pattern: `*` matches one token, `>` as the last token matches one or
   * more. The listener must not block: it buffers, and handles a full buffer.
   */
  subscribe(pattern: string, options: SubscribeOptions, listener: (event: Message) => void): Promise<Subscription> {
    const access = this.#access
    return access.run('subscribe', 'events', pattern, async () => {
      access.pattern('subscribe', 'events', pattern)
      assertObject('options', options, 'an object')
      assertFunction('listener', listener)
      assertNotDurable(options)
      options.signal?.throwIfAborted()
      const open = (): Promise<Subscription> =>
        access.engine.events.subscribe(pattern, options, (event) => {
          access.observers.delivered('events', event.channel, access.caller, event)
          listener(event)
        })
      return access.subscription('subscribe', 'events', pattern, options.group, () =>
        isWildcardPattern(pattern) ? open() : access.creating('events', pattern, open),
      )
    })
  }
}
