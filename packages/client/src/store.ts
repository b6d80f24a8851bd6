import type { EventSourceMessage } from 'eventsource-parser'

import { callSignal } from './client-context.ts'
import type { Message } from './cloud-event.ts'
import { isObject, messageOf, objectOf, parsed, asString } from './cloud-event.ts'
import { argumentError } from './errors.ts'
import { followStream, streamFailure } from './event-stream.ts'
import { callTool } from './http-calls.ts'
import type { ProjectOptions, StorePosition, StoreStart } from './projection.ts'
import { fixedStart, isAfter, Projection, startQuery } from './projection.ts'
import type { MessageOptions, Stored } from './send.ts'
import { storeMessage } from './send.ts'
import type { StreamRequest, SubscribeOptions, Subscription } from './subscription.ts'
import { isFinal, subscribe } from './subscription.ts'
import type { TypedChannel } from './typed-channel.ts'

/** A stored event. */
export interface StoredEvent<T = unknown> extends Message<T> {
  /** The sequence number in the store: 1, 2, 3 … */
  readonly sequence: number
}

export interface ReadOptions {
  /** @default 'first' */
  readonly from?: StoreStart | undefined
  /** Waits for new events after the last stored one. @default false */
  readonly follow?: boolean | undefined
  readonly signal?: AbortSignal | undefined
}

/** The options of {@link Store.on}. */
export interface StoreSubscribeOptions extends SubscribeOptions {
  /** The first event. Has no effect if the group has a position. @default 'new' */
  readonly from?: StoreStart | undefined
  /**
   * `true` stores the position of `group`, which is required, at the server: it is kept for seven days after the last
   * subscriber left. The position moves past an event when the server has sent it, so an event whose handler does not
   * finish before the process ends does not come again; {@link Store.project} keeps a position that moves with the
   * handler. @default false
   */
  readonly durable?: boolean | undefined
}

/** Events that are kept, in one order, and read from any position. */
export class Store<Output = unknown, Input = Output> {
  readonly #channel: TypedChannel<Output, Input>

  /** @internal */
  constructor(channel: TypedChannel<Output, Input>) {
    this.#channel = channel
  }

  /** Appends an event durably. Repeated by the client until the server has certainly stored it once. */
  async append(data: Input, options: MessageOptions = {}): Promise<Stored> {
    await this.#channel.check(data)
    const target = { channel: this.#channel.name, path: '/ce/send/event-store' } as const
    return storeMessage(this.#channel.context, { ...target, settings: {} }, data, options)
  }

  /** Returns the sequence of the last stored event; 0 if there is none. */
  async lastSequence(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<number> {
    return (await this.#last(options.signal)).sequence
  }

  /** Reads the stored events in order, without gap or repeat, across lost connections. */
  async *read(options: ReadOptions = {}): AsyncGenerator<StoredEvent<Output>, void, void> {
    const { follow = false } = options
    const signal = callSignal(this.#channel.context, options.signal)
    // A position that the last event can be compared with: a read without `follow` ends with that event.
    const from = follow ? (options.from ?? 'first') : fixedStart(options.from ?? 'first')
    const last = follow ? undefined : await this.#last(options.signal)
    if (last !== undefined && isAfter(from, last)) return
    const end = last?.sequence ?? Infinity
    let position: number | undefined
    const request = () => ({ method: 'GET', ...this.#request(from, position) }) as const
    for await (const item of followStream(this.#channel.context.transport, {
      request,
      silenceMs: this.#channel.context.silenceMs,
      signal,
    })) {
      if (item.kind === 'failure') this.#channel.context.onError(item.error)
      if (item.kind !== 'event') continue
      if (item.event.event === 'error') {
        const error = streamFailure(item.event.data)
        if (isFinal(error)) throw error
        continue
      }
      const event = await this.#event(item.event)
      position = event.sequence
      yield event
      if (position >= end) return
    }
    signal.throwIfAborted()
  }

  /** Subscribes from a position. The handler gets one event at a time; an error of the handler skips its event. */
  on(handler: (event: StoredEvent<Output>) => unknown, options: StoreSubscribeOptions = {}): Subscription {
    const { from = 'new', group, durable = false, onError = this.#channel.context.onError } = options
    if (durable && group === undefined) throw argumentError('durable', true, 'false, or true with group')
    let position: number | undefined
    return subscribe(this.#channel.context, options, {
      // A group that has a position keeps it; otherwise it begins after this subscriber's last event.
      request: () => this.#request(from, position, group, durable),
      received: async (event) => {
        position = Number(event.id)
        try {
          await handler(await this.#event(event))
        } catch (error) {
          onError(error)
        }
      },
      failed: (error) => {
        onError(error)
        return isFinal(error)
      },
    })
  }

  /**
   * Handles every stored event once and in order, from the position that `load` returns, and saves the position after
   * each event. An event whose handler fails is handled again until it succeeds: a projection skips nothing.
   */
  project(options: ProjectOptions, handler: (event: StoredEvent<Output>) => unknown): Projection {
    const request = (position: number | undefined) => this.#request(options.from ?? 'first', position)
    return new Projection(this.#channel.context, options, request, async (event) => handler(await this.#event(event)))
  }

  /** Returns the position of the last stored event; sequence 0 if there is none. */
  async #last(signal: AbortSignal | undefined): Promise<StorePosition> {
    const result = await callTool(this.#channel.context.transport, {
      tool: 'events_store_read_latest',
      arguments: { channel: this.#channel.name, count: 1 },
      repeatable: true,
      signal: callSignal(this.#channel.context, signal),
    })
    const [last] = Array.isArray(result['events']) ? result['events'] : []
    if (!isObject(last)) return { sequence: 0, time: 0 }
    return { sequence: Number(last['sequence'] ?? 0), time: Date.parse(asString(last['timestamp']) ?? '') }
  }

  #request(from: StoreStart, position: number | undefined, group?: string, durable = false): StreamRequest {
    return {
      path: '/ce/subscribe/events-store',
      query: { channel: this.#channel.name, group, durable: durable ? 'true' : undefined, ...startQuery(from) },
      headers: position === undefined ? {} : { 'Last-Event-ID': String(position) },
    }
  }

  async #event({ id, data }: EventSourceMessage): Promise<StoredEvent<Output>> {
    const message = messageOf(objectOf(parsed(data), 'an event'), this.#channel.name)
    return { ...message, data: await this.#channel.decode(message.data), sequence: Number(id) }
  }
}
