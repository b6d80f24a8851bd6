import type { EventsStoreSubscribeOptions } from '../engine/event-engine.ts'
import type { AppendResult, EventsStoreStart, LatestOptions, ReadOptions } from '../engine/events-store-engine.ts'
import type { Subscription } from '../engine/subscription.ts'
import { BrokerError } from '../errors.ts'
import { deduplicationIdOf } from '../message-tags.ts'
import type { MessageInput, StoredEvent } from '../message.ts'
import { assertFunction, assertObject } from '../options.ts'
import { routeMessage } from '../routing/route.ts'
import type { Access } from './access.ts'
import { assertInput, assertInteger, durableRefusal } from './access.ts'

/** The input of a producer to an events store. Keys have an effect only in compacted stores. */
export interface StoredEventInput extends MessageInput {
  /** The key of the event. A compacted store keeps the last event of each key. */
  readonly key?: string | undefined
  /**
   * A condition: write only if the key's last event has this sequence, or, for 0, if it has none. Otherwise CONFLICT.
   */
  readonly expectLastOfKey?: number | undefined
  /** `true` deletes the key. */
  readonly tombstone?: boolean | undefined
}

/** The events stores as one caller sees them: an ordered, durable log for each channel. */
export class EventsStore {
  readonly #access: Access

  constructor(access: Access) {
    this.#access = access
  }

  /**
   * Appends an event; resolves with its sequence when it is durable.
   * @throws BrokerError CHANNEL_*, MESSAGE_*, SCHEMA_MISMATCH, CONFLICT, ENGINE_UNAVAILABLE
   */
  publish(channel: string, input: StoredEventInput): Promise<AppendResult> {
    const access = this.#access
    const span = access.spans?.send(channel, [input])
    const call = async (): Promise<AppendResult> => {
      access.channel('send', 'events_store', channel)
      assertInput(input)
      const { key, expectLastOfKey, tombstone, deduplicationKey, deduplicationUntil } = input
      if (key === undefined && (expectLastOfKey !== undefined || tombstone)) {
        throw new BrokerError(
          'ARGUMENT_INVALID',
          'invalid argument key: it is missing; expectLastOfKey and tombstone require a key',
          { argument: 'key', allowed: 'a string' },
        )
      }
      if (expectLastOfKey !== undefined) assertInteger('expectLastOfKey', expectLastOfKey, 0)
      const message = access.message(input, span)
      // A tombstone has no content.
      if (!tombstone) access.body('events_store', channel, message)
      const deduplicationId = deduplicationIdOf(message, deduplicationKey, deduplicationUntil)
      const repeatable = { ...message, deduplicationId }
      const entry = { ...repeatable, key, expectLastOfKey, tombstone }
      const result = await access.creating('events_store', channel, () =>
        access.engine.eventsStore.append(channel, entry),
      )
      if (!result.duplicate) access.observers.accepted('events_store', channel, access.caller, message)
      // A tombstone only deletes a key, and routing targets do not keep keys.
      if (access.routing?.active && !tombstone) {
        const { id, duplicate } = result
        const accepted = { type: 'events_store', channel, message: repeatable, id, duplicate, span } as const
        await routeMessage(access.routing.table, access, accepted)
      }
      span?.set({ 'messaging.message.id': result.id })
      return result
    }
    return access.run('send', 'events_store', channel, call, span)
  }

  /** Returns events, oldest first: from a sequence, from a time, or from the first stored event. */
  read(channel: string, options: ReadOptions): Promise<readonly StoredEvent[]> {
    const access = this.#access
    return access.run('read', 'events_store', channel, async () => {
      access.channel('read', 'events_store', channel)
      assertObject('options', options, 'an object with maxMessages, such as { maxMessages: 100 }')
      assertInteger('maxMessages', options.maxMessages, 1)
      if (options.fromSequence !== undefined) assertInteger('fromSequence', options.fromSequence, 1)
      if (options.fromSequence !== undefined && options.fromTimestamp !== undefined) {
        throw new BrokerError(
          'ARGUMENT_INVALID',
          'invalid arguments: fromSequence and fromTimestamp exclude each other; set one of them',
          {
            argument: 'fromTimestamp',
            allowed: 'one of fromSequence and fromTimestamp',
          },
        )
      }
      return this.#seen(channel, await access.engine.eventsStore.read(channel, options))
    })
  }

  /** Returns the newest events, newest first. */
  readLatest(channel: string, options: LatestOptions): Promise<readonly StoredEvent[]> {
    const access = this.#access
    return access.run('read', 'events_store', channel, async () => {
      access.channel('read', 'events_store', channel)
      assertObject('options', options, 'an object with maxMessages, such as { maxMessages: 100 }')
      assertInteger('maxMessages', options.maxMessages, 1)
      return this.#seen(channel, await access.engine.eventsStore.readLatest(channel, options))
    })
  }

  #seen(channel: string, events: readonly StoredEvent[]): readonly StoredEvent[] {
    const { observers, caller } = this.#access
    for (const event of events) observers.delivered('events_store', channel, caller, event)
    return events
  }

  /** Returns the last event with this key, tombstones included. */
  getLast(channel: string, key: string): Promise<StoredEvent | undefined> {
    const access = this.#access
    return access.run('read', 'events_store', channel, async () => {
      access.channel('read', 'events_store', channel)
      return access.engine.eventsStore.getLast(channel, key)
    })
  }

  /**
   * Delivers every event from `start`, in order. The next event is delivered when the listener's promise has resolved.
   * With `durable`, the group continues at its stored position, if it has one, and the position moves past an event
   * when its promise has resolved.
   * @throws BrokerError CHANNEL_*, GROUP_LIMIT, ARGUMENT_INVALID for `durable` without `group`
   */
  subscribe(
    channel: string,
    start: EventsStoreStart,
    options: EventsStoreSubscribeOptions,
    listener: (event: StoredEvent) => void | Promise<void>,
  ): Promise<Subscription> {
    const access = this.#access
    return access.run('subscribe', 'events_store', channel, async () => {
      access.channel('subscribe', 'events_store', channel)
      assertObject('start', start, "an object, such as { from: 'first' }")
      assertObject('options', options, 'an object')
      assertFunction('listener', listener)
      if (start.from === 'sequence') assertInteger('sequence', start.sequence, 1)
      if (start.from === 'delta') assertInteger('milliseconds', start.milliseconds, 0)
      if (options.durable && options.group === undefined) {
        throw durableRefusal('there is no group whose position could be stored; set group', 'with group only')
      }
      options.signal?.throwIfAborted()
      return access.subscription('subscribe', 'events_store', channel, options.group, () =>
        access.creating('events_store', channel, () =>
          access.engine.eventsStore.subscribe(channel, start, options, (event) => {
            access.observers.delivered('events_store', channel, access.caller, event)
            return listener(event)
          }),
        ),
      )
    })
  }
}
