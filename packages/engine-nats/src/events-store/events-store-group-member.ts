import type { OpenSubscription, StoredEvent, StoredEventListener } from '@signalbox/broker-core/engine'
import { isBrokerError, messageSize } from '@signalbox/broker-core/engine'
import type { Msg, Subscription as Interest } from '@nats-io/transport-node'

import type { StoredChannel } from '../channels/stored-channel.ts'
import { isNoResponders } from '../errors.ts'
import type { Parts } from '../parts.ts'
import { ACK, NAK, parseAckSubject } from '../queues/ack-subject.ts'
import { FollowLoop } from './follow-loop.ts'
import type { GroupName } from './group-consumer.ts'
import { ACK_WAIT_MS, ensureGroupConsumer, groupConsumer } from './group-consumer.ts'
import { storedEventOf } from './events-store-reader.ts'

const PULL_MS = 30_000
/**
 * The pause of a subscriber after its listener rejected, during which others receive the next entries. It
 * doubles with each rejection.
 */
const FIRST_BACKOFF_MS = 100
const LAST_BACKOFF_MS = 5_000

/**
 * A subscriber of a consumer group: receives one entry at a time from a consumer that the group shares on
 * all nodes.
 */
export class EventsStoreGroupMember {
  readonly #parts: Parts
  readonly #name: string
  readonly #consumer: string
  readonly #group: GroupName
  readonly #subscription: OpenSubscription
  readonly #listener: StoredEventListener
  readonly #loop: FollowLoop
  #channel: StoredChannel
  #interest: Interest | undefined
  #start: number
  #made = false
  #backoff = 0

  constructor(
    parts: Parts,
    channel: StoredChannel,
    group: GroupName,
    start: number,
    subscription: OpenSubscription,
    listener: StoredEventListener,
  ) {
    this.#parts = parts
    this.#name = channel.name
    this.#channel = channel
    this.#group = group
    this.#consumer = groupConsumer(group)
    this.#start = start
    this.#subscription = subscription
    this.#listener = listener
    this.#loop = new FollowLoop(parts, channel.name, subscription)
  }

  /** Creates the group's position if it does not exist. */
  async join(): Promise<void> {
    if (!this.#group.durable) this.#announce()
    await ensureGroupConsumer(this.#parts, this.#channel, this.#group, this.#start)
    this.#made = true
  }

  /** Answers subscribers that leave: the group's position is still needed. */
  #announce(): void {
    const { connection, subjects } = this.#parts
    this.#interest?.unsubscribe()
    const subject = subjects.eventsStoreGroup(this.#channel.incarnation, this.#group.group)
    this.#interest = connection.listen(subject, (message) => {
      message.respond()
    })
  }

  /** Runs until the subscription ends. */
  run(): Promise<void> {
    return this.#loop.run(() => this.#step())
  }

  async #step(): Promise<void> {
    const channel = this.#parts.storedChannels.get('events_store', this.#name)
    if (!channel) return this.#loop.wait(60_000)
    if (channel.incarnation !== this.#channel.incarnation) {
      this.#channel = channel
      this.#start = 1
      this.#made = false
    }
    if (!this.#made) await this.join()
    const taken: Msg[] = []
    const { changed } = this.#loop
    let left = false
    const pulling = this.#parts.pulls.pull(channel.stream, this.#consumer, { batch: 1, waitMs: PULL_MS }, (message) => {
      // The subscriber has left: another one receives the entry.
      if (left) this.#parts.connection.nc.publish(message.reply ?? '', NAK)
      else taken.push(message)
    })
    const end = await Promise.race([pulling, changed])
    left = true
    for (const message of taken) await this.#handle(message)
    if (end === 'gone' || end === 'lost') {
      this.#made = false
      await this.#loop.retryPause()
    }
  }

  async #handle(message: Msg): Promise<void> {
    const { connection, counterTable, settings } = this.#parts
    const subject = message.reply ?? ''
    const entry = this.#entryOf(message)
    if (!entry) {
      connection.nc.publish(subject, '+TERM')
      return
    }
    if (this.#subscription.ended) {
      connection.nc.publish(subject, NAK)
      return
    }
    const working = setInterval(() => {
      if (connection.connected) connection.nc.publish(subject, '+WPI')
    }, ACK_WAIT_MS / 3).unref()
    try {
      counterTable.delivered(this.#channel.incarnation, 1, messageSize(entry))
      const left = this.#subscription.closed.then(() => 'left')
      const outcome = await Promise.race([Promise.resolve(this.#listener(entry)).then(() => 'done'), left])
      this.#backoff = 0
      if (outcome === 'done') await this.#ack(subject)
      else connection.nc.publish(subject, NAK)
    } catch (error) {
      connection.nc.publish(subject, NAK)
      settings.onProblem({ kind: 'listener', message: 'the listener of an events store threw', error })
      this.#backoff = Math.min(LAST_BACKOFF_MS, this.#backoff === 0 ? FIRST_BACKOFF_MS : 2 * this.#backoff)
      await this.#loop.wait(this.#backoff)
    } finally {
      clearInterval(working)
    }
  }

  /** Acknowledges an entry. If the ack does not arrive, the entry is delivered again. */
  async #ack(subject: string): Promise<void> {
    try {
      await this.#parts.connection.request(subject, ACK)
    } catch (error) {
      if (!isBrokerError(error, 'ENGINE_UNAVAILABLE')) throw error
    }
  }

  #entryOf(message: Msg): StoredEvent | undefined {
    const ack = parseAckSubject(message.reply ?? '')
    return ack && storedEventOf(this.#name, { data: message.data, sequence: ack.sequence, timestamp: ack.timestamp })
  }

  /** Leaves the group. The last subscriber on any node removes the group's position, unless the group is durable. */
  async leave(engineStays: boolean): Promise<void> {
    const { connection, subjects } = this.#parts
    this.#interest?.unsubscribe()
    if (this.#group.durable || !connection.connected || !engineStays) return
    try {
      await connection.request(subjects.eventsStoreGroup(this.#channel.incarnation, this.#group.group))
    } catch (error) {
      if (!isNoResponders(error)) return
      await connection.manager.consumers.delete(this.#channel.stream, this.#consumer).catch(() => {})
    }
  }
}
