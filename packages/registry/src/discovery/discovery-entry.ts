import type { StoredEvent, StoredEventInput } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import type { KeyedEntry } from '@signalbox/broker-core/internal'
import { parseJsonText } from '@signalbox/broker-core/internal'
import { compileLater } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import type { InstanceRecord, StoredInstance } from '../card/agent-instance.ts'
import { isInstanceId, isStored, seenAt, stored } from '../card/agent-instance.ts'
import type { StoredCard } from '../card/agent-card.ts'
import { AgentCardSchema, SEALED_MEMBER } from '../card/agent-card.ts'

/** The result of the last probe of an agent's card. */
export interface ProbeResult {
  /** The time of the probe, in ms since the epoch. */
  readonly atMs: number
  /** The node that probed, and that probes next. */
  readonly node: string
  /** The reason why the card could not be read or used; absent if it could. */
  readonly error?: string | undefined
}

/** A registered agent as the discovery log stores it. */
export interface AgentRecord {
  readonly card: StoredCard
  /** The account that the agent counts against: that of the caller of the first registration. */
  readonly account: string
  /** A random id that changes with each registration, and not with heartbeats. */
  readonly revision: string
  /** The sequence of the agent's first registration since it was last removed. The same on every node. */
  readonly since: number
  /** The time of the last heartbeat or registration that was replicated, in milliseconds since the epoch. */
  readonly lastSeenMs: number
  /** In the order of their registrations; empty for an agent that was registered without `instance_id`. */
  readonly instances: readonly InstanceRecord[]
  /** The credentials for the agent, sealed; undefined if there are none. */
  readonly sealed?: string | undefined
  /** The last probe; undefined for an agent that sends heartbeats. */
  readonly probe?: ProbeResult | undefined
  /** The time at which the agent expired and was parked, in ms since the epoch; undefined while it is not parked. */
  readonly parkedMs?: number | undefined
}

/** A record to be written; `since` is absent when its own entry is the first. */
export type NewRecord = Omit<AgentRecord, 'since'> & { readonly since?: number | undefined }

/** An entry to write. */
export type NewEntry = StoredEventInput & { readonly key: string }

/**
 * Creates the entry for a registered agent. The body is its card; tags hold the values that change with
 * heartbeats.
 *
 * The instances are a member of the card, which nodes of older versions keep when they write a heartbeat. They do not
 * keep the tag.
 */
export function recordEntry(record: NewRecord): NewEntry {
  const { card, account, revision, since, lastSeenMs, instances, sealed, probe, parkedMs } = record
  return {
    key: card.agent_id,
    // JSON leaves out what is undefined.
    body: encodeText(JSON.stringify({ ...storedForm(card, instances), [SEALED_MEMBER]: sealed })),
    tags: {
      revision,
      account,
      last_seen: String(lastSeenMs),
      ...(since === undefined ? {} : { since: String(since) }),
      ...(instances.length === 0 ? {} : { instances_seen: instances.map(({ seenMs }) => seenMs).join(',') }),
      ...(probe === undefined ? {} : { probed_at: String(probe.atMs), probe_node: probe.node }),
      ...(probe?.error === undefined ? {} : { probe_error: probe.error }),
      // A tag, because a heartbeat on a node of an older version must end the parking.
      ...(parkedMs === undefined ? {} : { parked_at: String(parkedMs) }),
    },
  }
}

/** Returns the card with its instances, as it is stored. */
export function storedForm(card: StoredCard, instances: readonly InstanceRecord[]): StoredCard {
  return instances.length === 0 ? card : { ...card, instances: instances.map(stored) }
}

const NOTHING = new Uint8Array(0)

/** Creates the entry for a removed agent. */
export function tombstone(agentId: string): NewEntry {
  return { key: agentId, body: NOTHING, tombstone: true }
}

/** The reservation of an expired agent's id for its owner. */
export interface IdHold {
  /** The ClientID of the agent's owner. */
  readonly owner: string
  /** The end of the reservation, in milliseconds since the epoch. */
  readonly untilMs: number
}

/**
 * Creates the entry for an expired agent whose id is held. It is not a tombstone: those are kept for an hour
 * only.
 */
export function holdEntry(agentId: string, { owner, untilMs }: IdHold): NewEntry {
  return { key: agentId, body: NOTHING, tags: { held_for: owner, held_until: String(untilMs) } }
}

/** Returns true while only the last owner of the id may register it. */
export function isHeld({ untilMs }: IdHold): boolean {
  return untilMs > Date.now()
}

/** The content of one entry: the agent's record, the hold of its id, or neither if it was removed. */
export interface DiscoveryEntry {
  readonly agentId: string
  readonly sequence: number
  readonly record?: AgentRecord
  readonly hold?: IdHold
}

const storedCard = compileLater(
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
 * Reads an entry.
 * @param known The agent's previous record. A heartbeat repeats its card, which is then not parsed again.
 * @throws TypeError for an entry that {@link recordEntry}, {@link holdEntry} and {@link tombstone} did not
 * create
 */
export function readEntry(event: KeyedEntry, known?: AgentRecord): DiscoveryEntry {
  const { key: agentId, sequence, tags } = event
  if (event.tombstone) return { agentId, sequence }
  const { held_for: owner, held_until: until } = tags
  if (owner !== undefined) return { agentId, sequence, hold: { owner, untilMs: whole('held_until', until) } }
  const { revision, last_seen: lastSeen, since = String(sequence) } = tags
  if (revision === undefined) throw new TypeError('it has no revision')
  const shared = { revision, since: whole('since', since), lastSeenMs: whole('last_seen', lastSeen) }
  const repeats = known !== undefined && known.revision === revision && known.since === shared.since
  const parsed = repeats ? known : parts(readCard(event.body))
  const { card, sealed } = parsed
  if (card.agent_id !== agentId) throw new TypeError('it holds the card of another agent')
  // Entries of older versions have no account.
  const account = tags['account'] ?? `client:${card.registered_by}`
  const times = tags['instances_seen']?.split(',').map((time) => whole('instances_seen', time)) ?? []
  // A heartbeat that a node of an older version writes does not name its instance.
  const instances = parsed.instances.map((one, index) => seenAt(one, times[index] ?? shared.lastSeenMs))
  const parkedMs = tags['parked_at'] === undefined ? undefined : whole('parked_at', tags['parked_at'])
  const record = { card, account, ...shared, instances, sealed, probe: probeIn(tags), parkedMs }
  return { agentId, sequence, record }
}

/**
 * Splits a stored card into the card, its sealed credentials and its instances. An earlier version stored a caller's
 * member `offline`, which the server sets now.
 */
function parts({ [SEALED_MEMBER]: sealed, offline: _ignored, ...card }: StoredCard): StoredParts {
  return { ...withoutOwnInstances(card), sealed: typeof sealed === 'string' ? sealed : undefined }
}

interface StoredParts extends Pick<AgentRecord, 'card' | 'sealed'> {
  readonly instances: readonly StoredInstance[]
}

/**
 * Splits a stored card into the card and its instances. A card that a node of an older version registered has an
 * `instance_id`, and is the only instance.
 */
function withoutOwnInstances(card: StoredCard): Omit<StoredParts, 'sealed'> {
  const { instances, ...own } = card
  const { instance_id, url, registered_at } = own
  if (!isInstanceId(instance_id)) return { card, instances: [] }
  const listed = Array.isArray(instances) ? instances.filter(isStored) : []
  return { card: own, instances: listed.length === 0 ? [{ instance_id, url, registered_at }] : listed }
}

function readCard(body: Uint8Array): StoredCard {
  const text = decodeText(body)
  if (text === undefined) throw new TypeError('it is not UTF-8')
  let card: unknown
  try {
    card = parseJsonText(text)
  } catch {
    throw new TypeError('it is not JSON')
  }
  if (!storedCard.Check(card)) throw new TypeError('it is not an agent card')
  return card
}

function probeIn({
  probed_at: at,
  probe_node: node,
  probe_error: error,
}: StoredEvent['tags']): ProbeResult | undefined {
  return at === undefined || node === undefined ? undefined : { atMs: whole('probed_at', at), node, error }
}

function whole(tag: string, text: string | undefined): number {
  const value = Number(text)
  if (text !== undefined && text !== '' && Number.isSafeInteger(value) && value >= 0 && value <= MAX_TIME_MS)
    return value
  throw new TypeError(`its tag ${tag} is not a whole number`)
}

/** The last time that a Date can represent. */
const MAX_TIME_MS = 8_640_000_000_000_000
