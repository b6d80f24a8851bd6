import { randomUUID } from 'node:crypto'

import type { StoredCard, SubmittedCard } from '../card/agent-card.ts'
import type { AgentRecord, NewRecord } from '../discovery/discovery-entry.ts'
import { RegistryError } from '../errors.ts'
import type { InstanceRecord } from './agent-instance.ts'
import { isInstanceId, seenAt } from './agent-instance.ts'
import { isSameUrl } from './registration-name.ts'

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
