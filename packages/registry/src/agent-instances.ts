import { randomUUID } from 'node:crypto'

import { shownText } from '@signalbox/broker-core/internal'

import type { StoredCard, SubmittedCard } from './card/agent-card.ts'
import type { InstanceRecord } from './card/agent-instance.ts'
import { isInstanceId, seenAt } from './card/agent-instance.ts'
import type { AgentRecord, NewRecord } from './discovery/discovery-entry.ts'
import { RegistryError } from './errors.ts'

/** The registration that a heartbeat or a deregistration means. Both absent: the agent as a whole. */
export interface RegistrationName {
  /** The `instance_id` of the registration. */
  readonly instanceId?: string | undefined
  /** The `url` of the registration. */
  readonly url?: string | undefined
}

/** Returns true if the name is for the whole agent, not for one instance. */
export function namesWhole({ instanceId, url }: RegistrationName): boolean {
  return instanceId === undefined && url === undefined
}

/**
 * Returns the instance that a call means. Without a name it is the one that registered last, whose url the card shows.
 * Returns undefined for an agent without instances.
 * @throws RegistryError INSTANCE_NOT_FOUND
 */
export function namedInstance(
  { card, instances }: Pick<AgentRecord, 'card' | 'instances'>,
  name: RegistrationName,
): InstanceRecord | undefined {
  const { instanceId, url } = name
  if (instances.length === 0) {
    if (instanceId === undefined && (url === undefined || isSameUrl(url, card.url))) return undefined
    throw instanceNotFound(card.agent_id, name)
  }
  if (namesWhole(name)) return instances.at(-1)
  const found = instances.find(
    (one) =>
      (instanceId === undefined || one.instance_id === instanceId) && (url === undefined || isSameUrl(url, one.url)),
  )
  if (found === undefined) throw instanceNotFound(card.agent_id, name)
  return found
}

/** Compares URLs as they are called: `http://Host:80` is `http://host/`. */
function isSameUrl(one: string, other: string): boolean {
  return one === other || (URL.parse(one)?.href ?? one) === (URL.parse(other)?.href ?? other)
}

function instanceNotFound(agentId: string, { instanceId, url }: RegistrationName): RegistryError {
  const parts = [
    ...(instanceId === undefined ? [] : [`instance_id ${shownText(instanceId, 128)}`]),
    ...(url === undefined ? [] : [`url ${shownText(url, 128)}`]),
  ]
  const text =
    `the agent ${JSON.stringify(agentId)} has no registration with ${parts.join(' and ')}; ` +
    'register it again, or read its registrations with GET /agents/{agent_id}'
  return new RegistryError('INSTANCE_NOT_FOUND', text)
}

/**
 * Returns the instances of an agent after a registration, the last one last. A registration without `instance_id`
 * replaces all instances. One with it replaces the instance of the same id, and that of the same url: two registrations
 * of one address are one server.
 * @param most The maximum number of instances of an agent
 * @throws RegistryError INSTANCE_LIMIT
 */
export function instancesAfter(
  { agent_id, instance_id, url }: SubmittedCard,
  before: readonly InstanceRecord[],
  nowMs: number,
  most: number,
): readonly InstanceRecord[] {
  if (!isInstanceId(instance_id)) return []
  const others = before.filter((one) => one.instance_id !== instance_id && !isSameUrl(one.url, url))
  if (others.length >= most) {
    const text =
      `the agent ${JSON.stringify(agent_id)} has ${others.length} instances, the maximum (CONNECTORSA2_A_MAX_INSTANCES is ${most}); ` +
      'deregister one, or raise the limit'
    throw new RegistryError('INSTANCE_LIMIT', text, [{ limit: 'instances', most }])
  }
  const known = before.find((one) => one.instance_id === instance_id)
  const registered_at = known?.registered_at ?? new Date(nowMs).toISOString()
  return [...others, { instance_id, url, registered_at, seenMs: nowMs }]
}

/**
 * Returns the record of an agent without some of its instances, or undefined if none is left. The card then shows the
 * url of the instance that registered last among the others.
 */
export function withoutInstances(record: AgentRecord, gone: ReadonlySet<string>): NewRecord | undefined {
  const instances = record.instances.filter(({ instance_id }) => !gone.has(instance_id))
  const last = instances.at(-1)
  if (last === undefined) return undefined
  const card: StoredCard = { ...record.card, url: last.url, instance_id: last.instance_id }
  return { ...record, card, instances, revision: randomUUID() }
}

/**
 * Returns the record with later times of life.
 * @param heardMs Returns the time at which an instance was last heard of; of the agent if it has no instances
 */
export function withTimes(record: AgentRecord, heardMs: (instanceId: string | undefined) => number): AgentRecord {
  if (record.instances.length === 0) {
    return { ...record, lastSeenMs: Math.max(record.lastSeenMs, heardMs(undefined)) }
  }
  const instances = record.instances.map((one) => seenAt(one, Math.max(one.seenMs, heardMs(one.instance_id))))
  return { ...record, instances, lastSeenMs: Math.max(record.lastSeenMs, ...instances.map(({ seenMs }) => seenMs)) }
}
