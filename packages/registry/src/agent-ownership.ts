import type { StoredCard } from './card/agent-card.ts'
import { RegistryError } from './errors.ts'
import type { RegistryCaller } from './options.ts'

/** R4: only the owner, or an Admin. */
export function mayAct({ registered_by: owner }: StoredCard, { clientId, admin = false }: RegistryCaller): boolean {
  return admin || owner === clientId
}

/** @throws RegistryError AGENT_OWNED */
export function requireOwner(card: StoredCard, caller: RegistryCaller): void {
  if (mayAct(card, caller)) return
  const text = `the agent ${JSON.stringify(card.agent_id)} belongs to another principal; choose another agent_id`
  throw new RegistryError('AGENT_OWNED', text)
}
