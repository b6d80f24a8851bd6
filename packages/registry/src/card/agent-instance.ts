import { isJsonObject } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

export const INSTANCE_ID_FORM = '1 to 128 characters of A-Z, a-z, 0-9, ., _ and -, beginning with a letter or a digit'

const INSTANCE_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** Returns true for a valid instance_id. */
export function isInstanceId(value: unknown): value is string {
  return typeof value === 'string' && INSTANCE_ID.test(value)
}

/** An instance as the discovery log stores it. */
export interface StoredInstance {
  readonly instance_id: string
  readonly url: string
  /** The time of the instance's first registration: ISO 8601, UTC, with milliseconds. */
  readonly registered_at: string
}

/** An instance of an agent, with its own address and liveness. */
export interface AgentInstance extends StoredInstance {
  /** The time of the instance's last heartbeat or registration: ISO 8601, UTC, with milliseconds. */
  readonly last_seen: string
}

/** An instance of a registered agent. */
export interface InstanceRecord extends StoredInstance {
  /** The last heartbeat or registration that was replicated, in milliseconds since the epoch. */
  readonly seenMs: number
}

export const AgentInstanceSchema = Type.Object(
  {
    instance_id: Type.String({ pattern: INSTANCE_ID.source }),
    url: Type.String({ description: 'the address of this instance' }),
    registered_at: Type.String({ format: 'date-time', description: 'the time of its first registration' }),
    last_seen: Type.String({ format: 'date-time', description: 'the time of its last heartbeat or registration' }),
  },
  { description: 'an instance of the agent' },
)

/** Removes the time of the last heartbeat. */
export function stored({ instance_id, url, registered_at }: StoredInstance): StoredInstance {
  return { instance_id, url, registered_at }
}

/** Returns the record of an instance with the time of its last heartbeat. */
export function seenAt({ instance_id, url, registered_at }: StoredInstance, seenMs: number): InstanceRecord {
  return { instance_id, url, registered_at, seenMs }
}

/**
 * Returns the instances of a card as the registry shows it. Returns an empty list for an agent that was registered
 * without `instance_id`: its member `instances`, if there is one, is the agent's own.
 */
export function agentInstances(card: { readonly [field: string]: unknown }): readonly AgentInstance[] {
  const { instance_id, instances } = card
  return isInstanceId(instance_id) && Array.isArray(instances) ? instances.filter(isShown) : []
}

/** Returns true for a value with the members of {@link StoredInstance}. */
export function isStored(value: unknown): value is StoredInstance {
  return (
    isJsonObject(value) &&
    isInstanceId(value['instance_id']) &&
    typeof value['url'] === 'string' &&
    typeof value['registered_at'] === 'string'
  )
}

function isShown(value: unknown): value is AgentInstance {
  return isStored(value) && 'last_seen' in value && typeof value.last_seen === 'string'
}
