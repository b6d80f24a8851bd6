import type { StoredCard } from './card/agent-card.ts'
import type { IdHold } from './discovery/discovery-entry.ts'
import { isHeld } from './discovery/discovery-entry.ts'
import { RegistryError } from './errors.ts'
import type { RegistryCaller } from './options.ts'

/** Returns true when the caller may change or remove the agent: its owner may, and an Admin. */
export function mayAct({ registered_by: owner }: StoredCard, { clientId, admin = false }: RegistryCaller): boolean {
  return admin || owner === clientId
}

/**
 * Throws when the id of an expired agent is held for another principal.
 * @throws RegistryError AGENT_OWNED
 */
export function requireFree(
  agentId: string,
  hold: IdHold | undefined,
  { clientId, admin = false }: RegistryCaller,
): void {
  if (hold === undefined || !isHeld(hold) || admin || hold.owner === clientId) return
  const text =
    `the agent_id ${JSON.stringify(agentId)} is held until ${new Date(hold.untilMs).toISOString()} for the principal whose agent expired; ` +
    'choose another agent_id, or ask an Admin to delete this one'
  throw new RegistryError('AGENT_OWNED', text)
}

/**
 * Throws when the agent belongs to another principal, and the caller is no Admin.
 * @throws RegistryError AGENT_OWNED
 */
export function requireOwner(card: StoredCard, caller: RegistryCaller): void {
  if (mayAct(card, caller)) return
  const text = `the agent ${JSON.stringify(card.agent_id)} belongs to another principal; choose another agent_id`
  throw new RegistryError('AGENT_OWNED', text)
}
