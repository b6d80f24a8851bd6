import type { NackOptions, PeekOptions, QueueSend, SendResult, SettleResult } from '../engine/queue-engine.ts'
import type { ResultLimit } from '../engine/result-size.ts'
import { BrokerError } from '../errors.ts'
import { deduplicationIdOf, queueTags } from '../message-tags.ts'
import type { MessageInput, QueueDelivery, QueueMessage } from '../message.ts'
import type { Attachment } from '../observer.ts'
import { assertObject, assertTexts, shown } from '../options.ts'
import { routeMessage } from '../routing/route.ts'
import type { RoutingTable } from '../routing/routing-table.ts'
import { checkBodies } from '../settings/schema/check-body.ts'
import type { WorkHandler, WorkOptions } from '../work/work.ts'
import { assertGroup } from '../settings/message-groups.ts'
import type { Span } from '../tracing/tracing.ts'
import { spanTime } from '../tracing/tracing.ts'
import { WorkerPool } from '../work/worker-pool.ts'
import type { Access } from './access.ts'
import { assertInput, assertInteger } from './access.ts'
import { Channels } from './channels.ts'

/** The input of a producer to a queue. */
export interface QueueSendInput extends MessageInput {
  /** The time until the message is visible, in ms; 0 means immediately. @default 0 */
  readonly delayMs?: number
  /** The time from the send until the message expires, in ms; 0 means never. @default 0 */
  readonly expirationMs?: number
  /** Receives before the message moves to its dead-letter queue; 0 means unlimited, or as the queue's policy says. @default 0 */
  readonly maxReceiveCount?: number
  /** The name of another queue; empty if there is none, or the one of the queue's policy. @default '' */
  readonly deadLetterQueue?: string
}

export interface QueueReceiveInput extends ResultLimit {
  /** The maximum number of messages, at least 1. @default 1 */
  readonly maxMessages?: number
  /** The maximum time to wait for a first message, in ms; 0 does not wait. @default 0 */
  readonly waitMs?: number
  /** The duration of the lease, in ms: the time to `ack`, `nack` or `extend`. @default 30000 */
  readonly leaseMs?: number
  readonly signal?: AbortSignal
}

export const DEFAULT_LEASE_MS = 30_000

/** The longest pause of a queue by a receiver, in ms: an hour. */
export const MAX_PAUSE_MS = 3_600_000

/** The queues as one caller sees them. Each message goes to one receiver, which leases it until it settles. */
export class Queues {
  readonly #access: Access

  constructor(access: Access) {
    this.#access = access
  }

  /**
   * Stores a message; resolves when it is durable.
   * @throws BrokerError CHANNEL_*, MESSAGE_*, SCHEMA_MISMATCH, ARGUMENT_INVALID, QUEUE_FULL, ENGINE_UNAVAILABLE
   */
  send(channel: string, input: QueueSendInput): Promise<SendResult> {
    const access = this.#access
    const span = access.spans?.send(channel, [input])
    const call = async (): Promise<SendResult> => {
      access.channel('send', 'queues', channel)
      const message = this.#complete(channel, input, span)
      access.body('queues', channel, message)
      const result = await access.creating('queues', channel, () => access.engine.queues.send(channel, message))
      if (!result.duplicate) access.observers.accepted('queues', channel, access.caller, message)
      if (access.routing?.active) {
        const { id, duplicate } = result
        await routeMessage(access.routing.table, access, { type: 'queues', channel, message, id, duplicate, span })
      }
      span?.set({ 'messaging.message.id': result.id })
      return result
    }
    return access.run('send', 'queues', channel, call, span)
  }

  /** Stores all messages or none, like {@link send}. */
  sendBatch(channel: string, inputs: readonly QueueSendInput[]): Promise<readonly SendResult[]> {
    const access = this.#access
    const span = Array.isArray(inputs) ? access.spans?.send(channel, inputs) : undefined
    const call = async (): Promise<readonly SendResult[]> => {
      access.channel('send', 'queues', channel)
      assertObject('inputs', inputs, 'a list of messages')
      const messages = inputs.map((input) => this.#complete(channel, input, span))
      if (messages.length === 0) return []
      const checks = checkBodies(access.engine.settings, 'queues', channel, messages)
      if (checks !== undefined) await checks
      const results = await access.creating('queues', channel, () => access.engine.queues.sendBatch(channel, messages))
      for (const [i, message] of messages.entries()) {
        if (!results[i]?.duplicate) access.observers.accepted('queues', channel, access.caller, message)
      }
      if (access.routing?.active) await this.#route(access.routing.table, channel, messages, results, span)
      return results
    }
    return access.run('send', 'queues', channel, call, span)
  }

  /** Starts the copies of the messages in order, so that copies keep the order of the batch. */
  async #route(
    table: RoutingTable,
    channel: string,
    messages: readonly QueueSend[],
    results: readonly SendResult[],
    span: Span | undefined,
  ): Promise<void> {
    const access = this.#access
    const copies = messages.map((message, i) => {
      const { id = message.id, duplicate = false } = results[i] ?? {}
      return routeMessage(table, access, { type: 'queues', channel, message, id, duplicate, span })
    })
    await Promise.all(copies)
  }

  #complete(channel: string, input: QueueSendInput, span: Span | undefined): QueueSend {
    assertInput(input)
    const { delayMs = 0, expirationMs = 0, maxReceiveCount = 0, deadLetterQueue = '' } = input
    assertInteger('delayMs', delayMs, 0)
    assertInteger('expirationMs', expirationMs, 0)
    assertInteger('maxReceiveCount', maxReceiveCount, 0)
    if (deadLetterQueue !== '') {
      this.#access.channel('send', 'queues', deadLetterQueue)
      if (deadLetterQueue === channel) {
        throw new BrokerError(
          'ARGUMENT_INVALID',
          'invalid argument deadLetterQueue: it is the queue itself; name another queue',
          {
            argument: 'deadLetterQueue',
            allowed: 'another queue',
          },
        )
      }
    }
    // Messages create the queue when they move to it, and then no caller can be refused any more.
    if (deadLetterQueue !== '') this.#access.reserve('queues', deadLetterQueue)
    const { tags = {}, deduplicationKey, deduplicationUntil } = input
    const message = this.#access.message(input, span, queueTags(tags))
    const { settings } = this.#access.engine
    const groups = settings.active ? settings.of('queues', channel).groups : undefined
    if (groups !== undefined) assertGroup(groups, message.tags, delayMs)
    // Member by member, which takes a fraction of the time of `...message` for each send.
    return {
      id: message.id,
      clientId: message.clientId,
      body: message.body,
      metadata: message.metadata,
      tags: message.tags,
      delayMs,
      expirationMs,
      maxReceiveCount,
      deadLetterQueue,
      deduplicationId: deduplicationIdOf(message, deduplicationKey, deduplicationUntil),
    }
  }

  /** Leases messages as soon as there is one. Returns an empty list if none arrives in time. */
  receive(channel: string, input: QueueReceiveInput = {}): Promise<readonly QueueDelivery[]> {
    const access = this.#access
    return access.run('receive', 'queues', channel, async () => {
      const { maxMessages = 1, waitMs = 0, leaseMs = DEFAULT_LEASE_MS, signal } = input
      const { maxBytes, sizeOf, admit, onFirst, onMore } = input
      access.channel('receive', 'queues', channel)
      assertInteger('maxMessages', maxMessages, 1)
      assertInteger('waitMs', waitMs, 0)
      assertInteger('leaseMs', leaseMs, 1)
      signal?.throwIfAborted()
      const { caller, gate, spans } = access
      const startedAt = spans === undefined ? 0 : spanTime()
      const receive = (until: AbortSignal | undefined): Promise<readonly QueueDelivery[]> => {
        const options = {
          maxBytes,
          sizeOf,
          admit,
          onFirst,
          onMore,
          maxMessages,
          waitMs,
          leaseMs,
          clientId: caller.clientId,
          signal: until,
        }
        // Receivers that wait pass the gate also without settings: a pause may begin meanwhile.
        return waitMs > 0 || (access.gated && gate.applies(channel))
          ? gate.receive(channel, options, !access.gated)
          : access.engine.queues.receive(channel, options)
      }
      let deliveries: readonly QueueDelivery[]
      if (waitMs > 0) {
        // While the call waits, the caller is a receiver.
        const attachment: Attachment = { kind: 'receiver', type: 'queues', channel, group: undefined, caller }
        access.observers.attached(attachment)
        try {
          deliveries = await (access.governed ? this.#whilePermitted(channel, signal, receive) : receive(signal))
        } finally {
          access.observers.detached(attachment)
        }
      } else deliveries = await receive(signal)
      for (const { message } of deliveries) access.observers.delivered('queues', channel, access.caller, message)
      if (deliveries.length > 0) spans?.received(channel, deliveries, startedAt, leaseMs)
      return deliveries
    })
  }

  /**
   * Works on the messages of a queue until the pool is drained: leases them, renews the leases while the handler runs,
   * acknowledges after the handler, and returns a message to the queue, after a delay, if the handler throws.
   * @throws BrokerError ARGUMENT_INVALID, TypeError for an unknown option
   */
  work(channel: string, handler: WorkHandler): WorkerPool
  work(channel: string, options: WorkOptions, handler: WorkHandler): WorkerPool
  work(channel: string, first: WorkOptions | WorkHandler = {}, second?: WorkHandler): WorkerPool {
    const [options, handler] = typeof first === 'function' ? [{}, first] : [first, second]
    const queue = {
      receive: (input: QueueReceiveInput) => this.receive(channel, input),
      ack: (receipts: readonly string[]) => this.ack(receipts),
      nack: (receipts: readonly string[], options: NackOptions) => this.nack(receipts, options),
      extend: (receipts: readonly string[], leaseMs: number) => this.extend(receipts, leaseMs),
      hasRetryPolicy: () => this.#access.engine.settings.of('queues', channel).retry !== undefined,
    }
    return new WorkerPool(queue, options, handler)
  }

  /**
   * Stops waiting when the policy no longer lets the caller receive (S4). Messages that were leased at that moment
   * return to their positions.
   * @throws BrokerError FORBIDDEN
   */
  async #whilePermitted(
    channel: string,
    signal: AbortSignal | undefined,
    receive: (until: AbortSignal) => Promise<readonly QueueDelivery[]>,
  ): Promise<readonly QueueDelivery[]> {
    const access = this.#access
    const revoked = new AbortController()
    const unwatch = access.whilePermitted('receive', 'queues', channel, (refusal) => revoked.abort(refusal))
    try {
      const deliveries = await receive(
        signal === undefined ? revoked.signal : AbortSignal.any([signal, revoked.signal]),
      )
      if (!revoked.signal.aborted) return deliveries
      const receipts = deliveries.map(({ receipt }) => receipt)
      if (receipts.length > 0) await access.engine.queues.nack(receipts, access.caller.clientId, { delayMs: 0 })
      throw revoked.signal.reason
    } finally {
      unwatch()
    }
  }

  /**
   * Acknowledges deliveries: removes the messages permanently; resolves when that is durable. Receipts with an expired
   * lease and receipts of other clients are in `lost`. Until the lease ends a repeated call has the result of the first.
   */
  ack(receipts: readonly string[]): Promise<SettleResult> {
    return this.#settle('ack', receipts, (queues, clientId) => queues.ack(receipts, clientId))
  }

  /**
   * Rejects deliveries, which ends their receipts and counts as a receive. The messages return to their positions after
   * the delay, or move to their dead-letter queues.
   * @throws BrokerError NO_DEAD_LETTER_QUEUE if `reject` is set and a message has none; then no message is settled
   */
  nack(receipts: readonly string[], options: NackOptions = {}): Promise<SettleResult> {
    return this.#settle('nack', receipts, (queues, clientId) => {
      assertNack(options)
      return queues.nack(receipts, clientId, options)
    })
  }

  /**
   * Pauses the queue for its receivers, for example because a service that they call is busy. Needs the permission to
   * receive. Only extends a pause. The end is rounded up to a second.
   * @param forMs 1 to 3,600,000
   * @throws BrokerError CHANNEL_*, CHANNEL_NOT_FOUND, ARGUMENT_INVALID, FORBIDDEN, ENGINE_UNAVAILABLE
   */
  pause(channel: string, forMs: number): Promise<void> {
    const access = this.#access
    return access.run('pause', 'queues', channel, async () => {
      access.channel('receive', 'queues', channel)
      assertInteger('forMs', forMs, 1, MAX_PAUSE_MS)
      // A pause of each possible name would fill the memory.
      if (!access.engine.channels.exists('queues', channel))
        throw await new Channels(access).notFound('queues', channel)
      // Many receivers pause a queue at the same time: those of one second are one pause.
      const until = Math.ceil((Date.now() + forMs) / 1000) * 1000
      await access.pauses.extend(channel, { until, reason: '', changedBy: access.caller.clientId })
    })
  }

  /** Sets the end of the leases to `leaseMs` ms from now. */
  extend(receipts: readonly string[], leaseMs: number): Promise<SettleResult> {
    const extend: Settlement = (queues, clientId) => {
      assertInteger('leaseMs', leaseMs, 1)
      return queues.extend(receipts, clientId, leaseMs)
    }
    return this.#settle('extend', receipts, extend, leaseMs)
  }

  #settle(
    operation: 'ack' | 'nack' | 'extend',
    receipts: readonly string[],
    call: Settlement,
    leaseMs?: number,
  ): Promise<SettleResult> {
    const access = this.#access
    const { spans } = access
    const settle = async (): Promise<SettleResult> => {
      assertTexts('receipts', receipts)
      return call(access.engine.queues, access.caller.clientId)
    }
    if (spans === undefined) return access.run('settle', 'queues', '', settle)
    const result = access.run('settle', 'queues', '', settle, spans.settle(operation, receipts))
    return result.then((settled) => {
      spans.settled(operation, receipts, settled, leaseMs)
      return settled
    })
  }

  /** Returns the next messages, or those from a sequence on, without changing them. */
  peek(channel: string, input: Partial<PeekOptions> = {}): Promise<readonly QueueMessage[]> {
    const access = this.#access
    return access.run('peek', 'queues', channel, async () => {
      access.channel('peek', 'queues', channel)
      const { maxMessages = 1, fromSequence } = input
      assertInteger('maxMessages', maxMessages, 1)
      if (fromSequence !== undefined) assertInteger('fromSequence', fromSequence, 1)
      return access.engine.queues.peek(channel, { ...input, maxMessages })
    })
  }

  /** Returns the time at which the oldest waiting message was sent, in ms since the epoch; undefined if none waits. */
  oldestWaiting(channel: string): Promise<number | undefined> {
    const access = this.#access
    return access.run('peek', 'queues', channel, async () => {
      access.channel('peek', 'queues', channel)
      return access.engine.queues.oldestWaiting(channel)
    })
  }

  /** Removes every message that is not leased; resolves with the number of removed messages. */
  purge(channel: string): Promise<number> {
    const access = this.#access
    return access.run('purge', 'queues', channel, async () => {
      access.channel('manage', 'queues', channel)
      const removed = await access.engine.queues.purge(channel)
      access.observers.managed('purge', 'queues', channel, access.caller)
      return removed
    })
  }
}

/** Settles deliveries of a client. */
type Settlement = (queues: Access['engine']['queues'], clientId: string) => Promise<SettleResult>

/** @throws BrokerError ARGUMENT_INVALID */
function assertNack(options: NackOptions): void {
  assertObject('options', options, 'an object such as { delayMs: 5000 }')
  const { delayMs, reject } = options
  if (delayMs !== undefined) assertInteger('delayMs', delayMs, 0)
  if (reject === undefined || typeof reject === 'boolean') {
    if (reject !== true || delayMs === undefined) return
    throw new BrokerError(
      'ARGUMENT_INVALID',
      'invalid argument delayMs: a rejected message does not return; leave it out',
      {
        argument: 'delayMs',
        allowed: 'left out with reject',
      },
    )
  }
  throw new BrokerError('ARGUMENT_INVALID', `invalid argument reject: ${shown(reject)}; allowed is true, false`, {
    argument: 'reject',
    allowed: 'true, false',
  })
}
