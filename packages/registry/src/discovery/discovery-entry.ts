import type { StoredEvent, StoredEventInput } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import { Type } from 'typebox'
import { Compile } from 'typebox/schema'

import { AgentCardSchema } from '../card/agent-card.ts'
import type { StoredCard } from '../card/agent-card.ts'

/** What the discovery log holds of a registered agent. */
export interface AgentRecord {
  readonly card: StoredCard
  /** What the agent counts against: the account of the caller that registered it first. */
  readonly account: string
  /** Another one after each registration; heartbeats keep it. */
  readonly revision: string
  /** The sequence at which the agent was registered first, since it last was not. The same on every node. */
  readonly since: number
  /** The last heartbeat or registration that was replicated, milliseconds since the epoch. */
  readonly lastSeenMs: number
}

/** A record to be written; `since` is absent where its own entry is the first. */
export type NewRecord = Omit<AgentRecord, 'since'> & { readonly since?: number }

/** The entry that says an agent is registered: its card as the body, what changes with heartbeats in tags. */
export function recordEntry({ card, account, revision, since, lastSeenMs }: NewRecord): StoredEventInput {
  return {
    key: card.agent_id,
    body: encodeText(JSON.stringify(card)),
    tags: {
      revision,
      account,
      last_seen: String(lastSeenMs),
      ...(since === undefined ? {} : { since: String(since) }),
    },
  }
}

const NOTHING = new Uint8Array(0)

/** The entry that says an agent is gone. */
export function tombstone(agentId: string): StoredEventInput {
  return { key: agentId, body: NOTHING, tombstone: true }
}

/** An expired agent's id stays its owner's until then. */
export interface IdHold {
  /** The ClientID of the agent's owner. */
  readonly owner: string
  /** Milliseconds since the epoch. */
  readonly untilMs: number
}

/** The entry that says an agent is gone, and its id held. Not a tombstone: those are kept for an hour only. */
export function holdEntry(agentId: string, { owner, untilMs }: IdHold): StoredEventInput {
  return { key: agentId, body: NOTHING, tags: { held_for: owner, held_until: String(untilMs) } }
}

/** Whether somebody else than the id's last owner has to leave it alone. */
export function isHeld({ untilMs }: IdHold): boolean {
  return untilMs > Date.now()
}

/** What one entry says: the agent's record, or that there is none. */
export interface DiscoveryEntry {
  readonly agentId: string
  readonly sequence: number
  readonly record?: AgentRecord
  readonly hold?: IdHold
}

const storedCard = Compile(
  Type.Interface(
    [AgentCardSchema],
    {
      protocolVersions: Type.Array(Type.String()),
      registered_by: Type.String(),
      registered_at: Type.String(),
    },
    {},
  ),
)

/**
 * Reads an entry. `known` is what the agent's entry before said: a heartbeat repeats its card, which is then not parsed again.
 * @throws TypeError for an entry that {@link recordEntry}, {@link holdEntry} and {@link tombstone} did not make
 */
export function readEntry(event: StoredEvent, known?: AgentRecord): DiscoveryEntry {
  const { key: agentId, sequence, tags } = event
  if (agentId === undefined) throw new TypeError('it has no key')
  if (event.tombstone) return { agentId, sequence }
  const { held_for: owner, held_until: until } = tags
  if (owner !== undefined) return { agentId, sequence, hold: { owner, untilMs: whole('held_until', until) } }
  const { revision, last_seen: lastSeen, since = String(sequence) } = tags
  if (revision === undefined) throw new TypeError('it has no revision')
  const shared = { revision, since: whole('since', since), lastSeenMs: whole('last_seen', lastSeen) }
  const repeats = known !== undefined && known.revision === revision && known.since === shared.since
  const card = repeats ? known.card : readCard(event.body)
  if (card.agent_id !== agentId) throw new TypeError('it holds the card of another agent')
  // Entries of older versions have none.
  const account = tags['account'] ?? `client:${card.registered_by}`
  return { agentId, sequence, record: { card, account, ...shared } }
}

function readCard(body: Uint8Array): StoredCard {
  const text = decodeText(body)
  if (text === undefined) throw new TypeError('it is not UTF-8')
  let card: unknown
  try {
    card = JSON.parse(text)
  } catch {
    throw new TypeError('it is not JSON')
  }
  if (!storedCard.Check(card)) throw new TypeError('it is not an agent card')
  return card
}

function whole(tag: string, text: string | undefined): number {
  const value = Number(text)
  if (text !== undefined && text !== '' && Number.isSafeInteger(value) && value >= 0 && value <= MAX_TIME_MS)
    return value
  throw new TypeError(`its tag ${tag} is not a whole number`)
}

/** The last moment a Date can hold. */
const MAX_TIME_MS = 8_640_000_000_000_000
