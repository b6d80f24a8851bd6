import type {
  OutgoingMessage,
  Reply,
  RequestEngine,
  RequestHandler,
  RequestMessage,
  RequestOptions,
  RequestType,
  SubscribeOptions,
  Subscription,
} from '@signalbox/broker-core/engine'
import { messageSize, OpenSubscription, toMessage, unavailable } from '@signalbox/broker-core/engine'
import { FAILED_REPLY, MAX_TIMER_MS, noSubscriber, OrderedSet, unanswered } from '@signalbox/broker-core/internal'

import type { ChannelRegistry, LiveChannel } from './channel-registry.ts'
import type { EmbeddedEngineProblem } from './options.ts'

interface Responder {
  readonly handler: RequestHandler
  readonly subscription: OpenSubscription
}

interface Group {
  readonly members: Responder[]
  next: number
}

/** A request that waits for its answer. */
interface Pending {
  /** The request; undefined after its delivery, so that its body is not in memory while the subscriber works. */
  message: RequestMessage | undefined
  readonly size: number
  /** `true` after it was answered, withdrawn or timed out. */
  over: boolean
  answer(reply: Reply): void
  fail(error: unknown): void
}

/** The responders and the waiting requests of one channel of commands or queries. */
interface RequestChannel {
  /** The groups by name; subscribers without a group form the group with the empty name. */
  readonly groups: Map<string, Group>
  readonly pending: OrderedSet<Pending>
}

/** The reason of every aborted handler signal. One shared object, because each new one would capture a stack trace. */
const OVER = new DOMException('the request has ended', 'AbortError')

/** The commands and queries of the embedded engine, passed in memory; the first answer is returned. */
export class EmbeddedRequests implements RequestEngine {
  readonly #registry: ChannelRegistry
  readonly #now: () => number
  readonly #onProblem: (problem: EmbeddedEngineProblem) => void
  readonly #requestChannels: Record<RequestType, Map<string, RequestChannel>> = {
    commands: new Map(),
    queries: new Map(),
  }
  #closed = false

  constructor(registry: ChannelRegistry, now: () => number, onProblem: (problem: EmbeddedEngineProblem) => void) {
    this.#registry = registry
    this.#now = now
    this.#onProblem = onProblem
  }

  async request(type: RequestType, name: string, message: OutgoingMessage, options: RequestOptions): Promise<Reply> {
    const { timeoutMs, onlyIfSubscribed = false, signal, callerGone } = options
    signal?.throwIfAborted()
    callerGone?.throwIfAborted()
    if (this.#closed) throw unavailable('it is closed')
    if (onlyIfSubscribed && !this.#requestChannels[type].get(name)?.groups.size) {
      throw noSubscriber(name, timeoutMs)
    }
    const channel = this.#registry.ensure(type, name)
    const size = messageSize(message)
    this.#registry.received(channel, size)
    const requestChannel = this.#requestChannel(type, name)
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    // Created only when a handler asks for it: most do not, and it costs as much as the rest of the request.
    let handlers: AbortController | undefined
    const timestamp = this.#now()
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      callerGone?.removeEventListener('abort', onCallerGone)
      entry.remove()
      this.#forgetIfEmpty(type, name, requestChannel)
      pending.over = true
      handlers?.abort(OVER)
    }
    const pending: Pending = {
      message: {
        ...toMessage(message, { channel: name, timestamp }),
        deadline: timestamp + timeoutMs,
        get signal() {
          handlers ??= new AbortController()
          if (pending.over) handlers.abort(OVER)
          return handlers.signal
        },
      },
      size,
      over: false,
      answer: (reply) => {
        resolve(reply)
        end()
      },
      fail: (error) => {
        reject(error)
        end()
      },
    }
    const onAbort = (): void => pending.fail(signal?.reason)
    // Not unref'd: a caller awaits it, and its time is bounded.
    const timer = setTimeout(
      () => pending.fail(unanswered(pending.message === undefined, name, timeoutMs)),
      Math.min(timeoutMs, MAX_TIMER_MS),
    )
    const onCallerGone = (): void => {
      if (pending.message) pending.fail(callerGone?.reason)
    }
    signal?.addEventListener('abort', onAbort)
    callerGone?.addEventListener('abort', onCallerGone)
    const entry = requestChannel.pending.add(pending)
    this.#deliver(channel, requestChannel.groups.values(), pending)
    return promise
  }

  /** Delivers an undelivered request to one subscriber of each of these groups. */
  #deliver(channel: LiveChannel, groups: Iterable<Group>, pending: Pending): void {
    const { message } = pending
    if (!message) return
    for (const group of groups) {
      const member = group.members[group.next++ % group.members.length]
      if (!member || pending.over) continue
      pending.message = undefined
      this.#registry.delivered(channel, 1, pending.size)
      this.#handle(member.handler, message).then(
        (reply) => pending.answer(reply),
        (error: unknown) => pending.fail(error),
      )
    }
  }

  /** Calls a handler, and keeps no reference to the request while the handler works. */
  #handle(handler: RequestHandler, message: RequestMessage): Promise<Reply> {
    const failed = (error: unknown): Reply => {
      this.#onProblem({ kind: 'listener', message: 'the handler of a command or query threw', error })
      return FAILED_REPLY
    }
    try {
      return handler(message).catch(failed)
    } catch (error) {
      return Promise.resolve(failed(error))
    }
  }

  async serve(
    type: RequestType,
    name: string,
    { group: groupName = '', signal }: SubscribeOptions,
    handler: RequestHandler,
  ): Promise<Subscription> {
    signal?.throwIfAborted()
    if (this.#closed) throw unavailable('it is closed')
    const channel = this.#registry.ensure(type, name)
    const requestChannel = this.#requestChannel(type, name)
    const group = requestChannel.groups.get(groupName) ?? { members: [], next: 0 }
    requestChannel.groups.set(groupName, group)
    const subscription = new OpenSubscription(signal, () =>
      this.#leave(type, name, groupName, requestChannel, responder),
    )
    const responder: Responder = { handler, subscription }
    group.members.push(responder)
    channel.subscribers++
    this.#registry.touch(channel)
    for (const pending of requestChannel.pending.members()) this.#deliver(channel, [group], pending)
    return subscription
  }

  /** Removes a subscriber. It finishes the requests that it is answering, and gets no new ones. */
  #leave(
    type: RequestType,
    name: string,
    groupName: string,
    requestChannel: RequestChannel,
    responder: Responder,
  ): void {
    const group = requestChannel.groups.get(groupName)
    const at = group?.members.indexOf(responder) ?? -1
    if (group && at !== -1) group.members.splice(at, 1)
    if (group?.members.length === 0) requestChannel.groups.delete(groupName)
    this.#forgetIfEmpty(type, name, requestChannel)
    const channel = this.#registry.get(type, name)
    if (!channel) return
    channel.subscribers = subscribersOf(requestChannel)
    this.#registry.touch(channel)
  }

  #requestChannel(type: RequestType, name: string): RequestChannel {
    let requestChannel = this.#requestChannels[type].get(name)
    if (!requestChannel) {
      requestChannel = { groups: new Map(), pending: new OrderedSet() }
      this.#requestChannels[type].set(name, requestChannel)
    }
    return requestChannel
  }

  #forgetIfEmpty(type: RequestType, name: string, requestChannel: RequestChannel): void {
    if (requestChannel.groups.size > 0 || requestChannel.pending.size > 0) return
    if (this.#requestChannels[type].get(name) === requestChannel) this.#requestChannels[type].delete(name)
  }

  /** Counts the subscribers of a channel that was deleted and created again. */
  channelCreated(channel: LiveChannel): void {
    if (channel.type !== 'commands' && channel.type !== 'queries') return
    const requestChannel = this.#requestChannels[channel.type].get(channel.name)
    channel.subscribers = requestChannel ? subscribersOf(requestChannel) : 0
  }

  close(): void {
    this.#closed = true
    for (const requestChannels of Object.values(this.#requestChannels)) {
      for (const { groups, pending } of requestChannels.values()) {
        for (const request of pending.members()) request.fail(unavailable('it is closed'))
        for (const { members } of groups.values())
          for (const { subscription } of members.slice()) subscription.end(unavailable('it is closed'))
      }
    }
  }
}

function subscribersOf({ groups }: RequestChannel): number {
  let count = 0
  for (const { members } of groups.values()) count += members.length
  return count
}
