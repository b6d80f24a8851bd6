import { Buffer } from 'node:buffer'

import type { Steps } from '@signalbox/http-kit'
import { CallEnded } from '@signalbox/http-kit'
import { fairTurns, TextParts } from '@signalbox/http-kit/internal'

import { notFound, requireOwner } from '../agent-writes.ts'
import type { AgentCard } from '../card/agent-card.ts'
import { isParkable } from '../card/agent-options.ts'
import { RegistryError } from '../errors.ts'
import type { AgentInbox, InboxItem, InboxLeaseOptions } from './agent-inbox.ts'
import { readEventsBody, readLeaseBody, readNackBody } from './inbox-bodies.ts'
import { JsonAnswer } from './registry-exchange.ts'
import type { RegistryRoute, RegistryRouteCall } from './registry-route.ts'
import { callerOf } from './registry-route.ts'

/** Bytes that are serialized before other requests run. */
const BYTES_AT_ONCE = 256 * 1024

const lease: RegistryRoute = {
  name: 'inbox_lease',
  method: 'POST',
  body: 'inbox',
  waits: true,
  async run(call) {
    const { registry, request, identity, agentId, account } = call
    const { card, inbox } = await inboxOf(call)
    const { max = 1, wait_seconds: wait = 0, lease_seconds: seconds = 60 } = readLeaseBody(call.body)
    // A lease proves that the agent lives.
    await registry.heartbeat(agentId, callerOf(request, identity))
    const options = { max, waitMs: wait * 1000, leaseMs: seconds * 1000, signal: call.signal() }
    const items = await leased(inbox, registry.get(agentId) ?? card, options)
    return new JsonAnswer(await fairTurns.steps(account, itemsText(items)), {})
  },
}

/** Leases requests; none if the server shuts down. */
async function leased(inbox: AgentInbox, card: AgentCard, options: InboxLeaseOptions): Promise<readonly InboxItem[]> {
  try {
    return await inbox.lease(card, options)
  } catch (error) {
    if (error instanceof CallEnded && error.reason === 'shutdown') return []
    throw error
  }
}

/** Serializes leased requests, a piece of work at a time. */
function* itemsText(items: readonly InboxItem[]): Steps<string | TextParts> {
  const list = new TextParts().add('{"items":[')
  let bytes = 0
  for (const [i, item] of items.entries()) {
    const text = JSON.stringify({
      receipt: item.receipt,
      task_id: item.taskId,
      context_id: item.contextId,
      attempt: item.attempt,
      lease_until: new Date(item.leaseUntil).toISOString(),
      caller_id: item.callerId,
      headers: item.headers,
      request: item.request,
    })
    list.add(i === 0 ? text : `,${text}`)
    bytes += Buffer.byteLength(text)
    if (bytes < BYTES_AT_ONCE) continue
    bytes = 0
    yield
  }
  return list.add(']}').shortest
}

const events: RegistryRoute = {
  name: 'inbox_events',
  method: 'POST',
  body: 'inbox',
  async run(call) {
    const { registry, request, identity, agentId } = call
    const { card, inbox } = await inboxOf(call)
    const { receipt, offset, events: given, lease_seconds: seconds } = readEventsBody(call.body)
    // An agent that works on a request for long leases no other one meanwhile.
    await registry.heartbeat(agentId, callerOf(request, identity))
    const time = seconds === undefined ? {} : { leaseMs: seconds * 1000 }
    const result = await inbox.events(card, { receipt, offset, events: given, ...time })
    return {
      accepted: result.accepted,
      cancel_requested: result.cancelRequested,
      lease_until: new Date(result.leaseUntil).toISOString(),
    }
  },
}

const nack: RegistryRoute = {
  name: 'inbox_nack',
  method: 'POST',
  body: 'inbox',
  async run(call) {
    const { card, inbox } = await inboxOf(call)
    const { delay_seconds: delay, ...rest } = readNackBody(call.body)
    await inbox.nack(card, { ...rest, ...(delay === undefined ? {} : { delayMs: delay * 1000 }) })
    return {}
  },
}

const status: RegistryRoute = {
  name: 'inbox_status',
  method: 'GET',
  async run(call) {
    const { card, inbox } = await inboxOf(call)
    const { waiting, inFlight, oldestSeconds } = await inbox.status(card)
    return { waiting, in_flight: inFlight, oldest_seconds: oldestSeconds }
  },
}

/** By the path after `/agents/{agent_id}/inbox`. */
const ROUTES: ReadonlyMap<string, RegistryRoute> = new Map([
  ['', status],
  ['/lease', lease],
  ['/events', events],
  ['/nack', nack],
])

/** Returns the route of a path below an agent's inbox, `` for the inbox itself; undefined for an unknown path. */
export function inboxRouteAt(rest: string): RegistryRoute | undefined {
  return ROUTES.get(rest)
}

/**
 * Returns the card of an agent that the caller may act on, and that has an inbox.
 * @throws RegistryError AGENT_NOT_FOUND, AGENT_OWNED, INBOX_NOT_FOUND
 * @throws BrokerError FORBIDDEN, ENGINE_UNAVAILABLE
 */
async function inboxOf(call: RegistryRouteCall): Promise<{ readonly card: AgentCard; readonly inbox: AgentInbox }> {
  const { registry, request, identity, rights, agentId, inbox } = call
  rights?.authorize('register', 'agents', agentId)
  const card = await registry.find(agentId)
  if (card === undefined) throw notFound(agentId)
  requireOwner(card, callerOf(request, identity))
  if (inbox === undefined || !isParkable(card)) throw inboxNotFound(agentId)
  return { card, inbox }
}

function inboxNotFound(agentId: string): RegistryError {
  const text =
    `the agent ${JSON.stringify(agentId)} has no inbox; ` +
    'register it with "a2a": {"pull": true} and without url, or with "a2a": {"offline": "queue"}'
  return new RegistryError('INBOX_NOT_FOUND', text)
}
