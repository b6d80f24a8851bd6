import { shownText } from '@signalbox/broker-core/internal'

import type { AgentRecord } from '../discovery/discovery-entry.ts'
import { RegistryError } from '../errors.ts'
import type { InstanceRecord } from './agent-instance.ts'

/** The registration that a heartbeat or a deregistration means. Both absent: the agent as a whole. */
export interface RegistrationName {
  /** The `instance_id` of the registration. */
  readonly instanceId?: string
  /** The `url` of the registration. */
  readonly url?: string
}

/** Returns true if the name is that of the agent as a whole. */
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
export function isSameUrl(one: string, other: string): boolean {
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
