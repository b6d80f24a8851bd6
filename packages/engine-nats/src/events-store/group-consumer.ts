import { groupLimit } from '@signalbox/broker-core/engine'
import type { ConsumerConfig } from '@nats-io/jetstream'
import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream'

import type { StoredChannel } from '../channels/stored-channel.ts'
import { API, isApiError } from '../errors.ts'
import type { Parts } from '../parts.ts'
import { hash } from '../subjects.ts'

const NANOS = 1_000_000
/**
 * The silence of a node after which its entry is delivered to another subscriber of the group, in
 * milliseconds.
 */
export const ACK_WAIT_MS = 30_000
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
export function groupConsumer({ group, durable }: GroupName): string {
  return `${durable ? DURABLE_PREFIX : 'g-'}${hash(group)}`
}

/**
 * The creations of durable groups of each node, by stream: they run one after the other, so that each counts the groups
 * before it.
 */
const making = new WeakMap<Parts, Map<string, Promise<void>>>()

/**
 * Creates the consumer of a group, unless it exists: its position begins at `start`.
 * @throws BrokerError GROUP_LIMIT, ENGINE_UNAVAILABLE
 */
export async function ensureGroupConsumer(
  parts: Parts,
  channel: StoredChannel,
  name: GroupName,
  start: number,
): Promise<void> {
  if (await exists(parts, channel, name)) return
  if (!name.durable) return create(parts, channel, name, start)
  const own = making.get(parts) ?? new Map<string, Promise<void>>()
  making.set(parts, own)
  const before = own.get(channel.stream)
  const made = (async () => {
    await before?.catch(() => {})
    if (await hasMaxGroups(parts, channel)) throw groupLimit(channel.name, parts.settings.maxDurableGroups)
    await create(parts, channel, name, start)
  })()
  own.set(channel.stream, made)
  try {
    await made
  } finally {
    if (own.get(channel.stream) === made) own.delete(channel.stream)
  }
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
