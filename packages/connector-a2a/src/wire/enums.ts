import type { WireVersion } from './methods.ts'

import type { MemberReader } from './member-reader.ts'

const STATES_BY_10: ReadonlyMap<string, string> = new Map([
  ['TASK_STATE_UNSPECIFIED', 'unknown'],
  ['TASK_STATE_SUBMITTED', 'submitted'],
  ['TASK_STATE_WORKING', 'working'],
  ['TASK_STATE_COMPLETED', 'completed'],
  ['TASK_STATE_FAILED', 'failed'],
  ['TASK_STATE_CANCELED', 'canceled'],
  ['TASK_STATE_INPUT_REQUIRED', 'input-required'],
  ['TASK_STATE_REJECTED', 'rejected'],
  ['TASK_STATE_AUTH_REQUIRED', 'auth-required'],
])

const STATES_BY_03: ReadonlyMap<string, string> = new Map([...STATES_BY_10].map(([name10, name03]) => [name03, name10]))

/** The spelling of some releases of the protocol's definition. */
const CANCELLED = 'TASK_STATE_CANCELLED'

/** Translates the state of a status. A state that the source version does not define becomes the unknown state. */
export function translateState(status: MemberReader, to: WireVersion): string {
  const state = status.string('state') ?? ''
  if (to === '1.0') return STATES_BY_03.get(state) ?? 'TASK_STATE_UNSPECIFIED'
  return STATES_BY_10.get(state === CANCELLED ? 'TASK_STATE_CANCELED' : state) ?? 'unknown'
}

/**
 * Translates the role of a message. A message of 1.0 without a role is the agent's: Protocol Buffers omits unset
 * members, and only agents can send such a message here.
 */
export function translateRole(message: MemberReader, to: WireVersion): string {
  const role = message.string('role')
  if (to === '1.0') {
    if (role === 'user') return 'ROLE_USER'
    if (role === 'agent') return 'ROLE_AGENT'
    throw message.invalid('role', '"user" or "agent"')
  }
  if (role === 'ROLE_USER') return 'user'
  if (role === undefined || role === 'ROLE_AGENT' || role === 'ROLE_UNSPECIFIED') return 'agent'
  throw message.invalid('role', ROLES_10)
}

/** Requires the role of a message that a caller sends. */
export function requireRole(message: MemberReader): void {
  const role = message.string('role')
  if (role === undefined || role === 'ROLE_UNSPECIFIED') throw message.invalid('role', ROLES_10)
}

const ROLES_10 = '"ROLE_USER" or "ROLE_AGENT"'
