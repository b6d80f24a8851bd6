import type { OpenSubscription, StoredEvent, StoredEventListener } from '@signalbox/broker-core/engine'
import { groupLimit, isBrokerError, messageSize } from '@signalbox/broker-core/engine'
import { SerialTasks } from '@signalbox/broker-core/internal'
import type { ConsumerConfig } from '@nats-io/jetstream'
import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream'
import type { Subscription as Interest } from '@nats-io/transport-node'

import type { StoredChannel } from '../channels/channel-bucket.ts'
import { API, isApiError, isNoResponders } from '../errors.ts'
import type { Received } from '../large/thread-calls.ts'
import type { Parts } from '../parts.ts'
import { ACK, NAK, parseAckSubject } from '../pulls.ts'
import { hash } from '../subjects.ts'
import { FollowLoop } from './events-store-follower.ts'
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
    const taken: Received[] = []
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

  async #handle(message: Received): Promise<void> {
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

  #entryOf(message: Received): StoredEvent | undefined {
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

const NANOS = 1_000_000
/**
 * The silence of a node after which its entry is delivered to another subscriber of the group, in
 * milliseconds.
 */
const ACK_WAIT_MS = 30_000
/**
 * The start of the names of durable groups' consumers. Nodes of earlier versions use `g-` only: they remove
 * the consumer of a group when its last subscriber leaves.
 */
const DURABLE_PREFIX = 'd-'

/** The name of a group in an events store. */
export interface GroupName {
  readonly group: string
  readonly durable: boolean
}

/** Returns the name of the consumer that the subscribers of a group share. */
function groupConsumer({ group, durable }: GroupName): string {
  return `${durable ? DURABLE_PREFIX : 'g-'}${hash(group)}`
}

/**
 * The creations of durable groups of each node, by stream: they run one after the other, so that each counts the groups
 * before it.
 */
const creations = new WeakMap<Parts, SerialTasks>()

/**
 * Creates the consumer of a group, unless it exists: its position begins at `start`.
 * @throws BrokerError GROUP_LIMIT, ENGINE_UNAVAILABLE
 */
async function ensureGroupConsumer(
  parts: Parts,
  channel: StoredChannel,
  name: GroupName,
  start: number,
): Promise<void> {
  if (await exists(parts, channel, name)) return
  if (!name.durable) return create(parts, channel, name, start)
  const ofNode = creations.get(parts) ?? new SerialTasks()
  creations.set(parts, ofNode)
  await ofNode.run(channel.stream, async () => {
    if (await hasMaxGroups(parts, channel)) throw groupLimit(channel.name, parts.settings.maxDurableGroups)
    await create(parts, channel, name, start)
  })
}

async function create(parts: Parts, channel: StoredChannel, name: GroupName, start: number): Promise<void> {
  const { connection, settings } = parts
  const config: Partial<ConsumerConfig> = {
    durable_name: groupConsumer(name),
    ack_policy: AckPolicy.Explicit,
    ack_wait: ACK_WAIT_MS * NANOS,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: start,
    max_ack_pending: 10_000,
    // The servers remove the position of a durable group; the last subscriber removes those of the others.
    ...(name.durable && { inactive_threshold: settings.durableGroupMs * NANOS }),
  }
  try {
    await connection.call(() => connection.manager.consumers.add(channel.stream, config))
  } catch (error) {
    // Another node created it meanwhile, with another start: its position applies.
    if (!(await exists(parts, channel, name))) throw error
  }
}

function exists({ connection }: Parts, { stream }: StoredChannel, name: GroupName): Promise<boolean> {
  return connection.call(async () => {
    try {
      await connection.manager.consumers.info(stream, groupConsumer(name))
      return true
    } catch (error) {
      if (isApiError(error, API.CONSUMER_NOT_FOUND)) return false
      throw error
    }
  })
}

/** Returns whether the store may have no further durable group. Other nodes may create one at the same time. */
async function hasMaxGroups({ connection, settings }: Parts, { stream }: StoredChannel): Promise<boolean> {
  const { consumers, streams } = connection.manager
  return connection.call(async () => {
    const { state } = await streams.info(stream)
    if (state.consumer_count < settings.maxDurableGroups) return false
    let groups = 0
    for await (const { name } of consumers.list(stream)) {
      if (name.startsWith(DURABLE_PREFIX)) groups++
    }
    return groups >= settings.maxDurableGroups
  })
}
