import { createHash } from 'node:crypto'

import type { BrokerHandle, QueueDelivery } from '@signalbox/broker-core'
import type { JsonObject } from '@signalbox/http-kit'
import type {
  AgentCard,
  AgentInbox,
  InboxEventsInput,
  InboxEventsResult,
  InboxItem,
  InboxLeaseOptions,
  InboxNackInput,
  InboxStatus,
} from '@signalbox/registry'
import { InboxError } from '@signalbox/registry'

import { HEADER_TAG } from '../requests/agent-query.ts'
import type { TaskPhase } from '../runs/seen-task.ts'
import { isObject, parsedJson } from '../wire/index.ts'
import { assertBounded, assertStates, completeEvents } from './inbox-events.ts'
import type { Inbox } from './inbox.ts'
import { inboxQueue } from './inbox.ts'
import type { KnownRun } from './parked-index.ts'
import { acceptedIn } from './task-log.ts'

/** A lease of a call, with the last state of its task. */
interface HeldLease {
  readonly receipt: string
  /** The digest of the receipt. */
  readonly lease: string
  readonly state: KnownRun
}

/** The lessees of inboxes: they get requests, and write events about them. */
export class Leases implements AgentInbox {
  readonly #queues: BrokerHandle['queues']
  readonly #inbox: Inbox

  constructor({ queues }: Pick<BrokerHandle, 'queues'>, inbox: Inbox) {
    this.#queues = queues
    this.#inbox = inbox
  }

  /** @inheritdoc */
  async lease(card: AgentCard, { max, waitMs, leaseMs, signal }: InboxLeaseOptions): Promise<readonly InboxItem[]> {
    const { agent_id: agentId } = card
    const deadline = performance.now() + waitMs
    for (;;) {
      this.#inbox.hear(agentId)
      const left = Math.max(0, Math.ceil(deadline - performance.now()))
      const options = { maxMessages: max, waitMs: left, leaseMs, signal }
      const deliveries = await this.#queues.receive(inboxQueue(agentId), options)
      const leased = await Promise.all(deliveries.map((delivery) => this.#lease(agentId, delivery, leaseMs)))
      const items = leased.filter((item) => item !== undefined)
      if (signal.aborted && items.length > 0) {
        // The lessee has left before it got them.
        await this.#queues.nack(items.map(({ receipt }) => receipt.slice(receipt.indexOf(':') + 1)))
      }
      if (signal.aborted) return []
      if (items.length > 0 || deliveries.length === 0) return items
    }
  }

  /** Leases an item to an agent; undefined, and the item is gone, if it does not count any more. */
  async #lease(agentId: string, { message, receipt }: QueueDelivery, leaseMs: number): Promise<InboxItem | undefined> {
    const { body, expiresAt, receiveCount: attempt, tags } = message
    const { run = '', item = '', context: contextId = '', caller: callerId = '', after } = tags
    const content = parsedJson(body)
    const { request, task } = isObject(content) ? content : {}
    if (!isObject(request) || !isObject(task)) return this.#drop(receipt)
    const lease = leaseOf(receipt)
    for (let tries = 0; tries < 3; tries++) {
      const followed = tries === 0 ? this.#inbox.tasks.get(run) : undefined
      const known = followed?.item === item ? followed : await this.#inbox.find(run)
      // The node that parked the message may not have recorded it yet, or was lost before it did.
      const isNew = known === undefined ? after === undefined : String(known.sequence) === after
      const stored = { run, agentId, callerId, contextId, item, expiresAt }
      const found = isNew ? await this.#inbox.store(stored, task, known) : known
      if (found === undefined) continue
      if (found.item !== item || found.phase === 'done' || found.phase === 'waiting') return this.#drop(receipt)
      const end = await this.#inbox.log.end(run)
      if (end.isOver) {
        await this.#inbox.update(found, { phase: 'done' })
        return this.#drop(receipt)
      }
      const delivered = await this.#inbox.write({ ...found, phase: 'delivered', attempt, lease }, found)
      if (delivered === undefined) continue
      await this.#inbox.log.begin(delivered, task, end)
      const leaseUntil = Date.now() + leaseMs
      const headers = headersOf(tags)
      return { receipt: `${run}:${receipt}`, taskId: run, contextId, attempt, leaseUntil, callerId, headers, request }
    }
    await this.#queues.nack([receipt])
    return undefined
  }

  async #drop(receipt: string): Promise<undefined> {
    await this.#queues.ack([receipt])
    return undefined
  }

  /** @inheritdoc */
  async events(card: AgentCard, input: InboxEventsInput): Promise<InboxEventsResult> {
    assertStates(input.events)
    return this.relay(card, input)
  }

  /** As `events`, for those of an agent that is called: its states are taken as they are, as in other calls. */
  async relay(card: AgentCard, input: InboxEventsInput): Promise<InboxEventsResult> {
    const { events, leaseMs = DEFAULT_LEASE_MS } = input
    const { receipt, lease, state } = await this.#held(card, input.receipt)
    this.#inbox.hear(state.agentId)
    const { complete, phase } = completeEvents(events, state)
    const end = await this.#inbox.log.end(state.run)
    const accepted = acceptedIn(end, lease)
    const { offset = accepted } = input
    if (offset > accepted) {
      throw new InboxError(
        'OFFSET_WRONG',
        `offset is ${offset}, and ${accepted} events of this delivery were accepted; send the events from ${accepted} on`,
      )
    }
    const fresh = complete.slice(accepted - offset)
    assertBounded(fresh, end, phase)
    if (state.phase === 'done' || state.phase === 'waiting') {
      if (fresh.length > 0) throw new InboxError('RUN_ENDED', 'this delivery has ended; it takes no further events')
    } else if (fresh.length > 0 || phase === 'open') {
      const { lost } = await this.#queues.extend([receipt], leaseMs)
      if (lost.length > 0) throw leaseLost()
      const isWritten = fresh.length === 0 || (await this.#write(state, fresh, phase, { lease, end }))
      // Another call of the same lessee did so first: this one may be its repetition.
      if (!isWritten) return this.relay(card, input)
    }
    // If nothing is fresh, the call that wrote the end was lost before it was over.
    if (phase !== 'open') await this.#finish(state, phase, receipt)
    return {
      accepted: Math.max(accepted, offset + complete.length),
      cancelRequested: state.cancel === true,
      leaseUntil: Date.now() + leaseMs,
    }
  }

  /** Writes events of a lessee. Resolves with false if others were written meanwhile. @throws InboxError LEASE_LOST */
  async #write(
    state: KnownRun,
    events: readonly JsonObject[],
    phase: TaskPhase,
    { end, lease }: Pick<HeldLease, 'lease'> & { readonly end: Parameters<Inbox['log']['append']>[3] },
  ): Promise<boolean> {
    const begins = state.phase === 'delivered' && phase === 'open'
    const known = begins ? await this.#inbox.update(state, { phase: 'working' }) : state
    if (known === undefined) throw leaseLost()
    return this.#inbox.log.append(known, events, phase, end, lease)
  }

  /** @inheritdoc */
  async nack(
    card: AgentCard,
    { receipt: given, delayMs = 0, reject = false, reason = '' }: InboxNackInput,
  ): Promise<void> {
    const { receipt, state } = await this.#held(card, given)
    if (reject) {
      const text = reason === '' ? 'the agent has refused the request' : reason
      await this.#inbox.end(state, { state: 'TASK_STATE_FAILED', reason: 'REJECTED', text })
      await this.#queues.ack([receipt])
      return
    }
    await this.#inbox.update(state, { phase: 'stored', lease: undefined })
    const { lost } = await this.#queues.nack([receipt], { delayMs })
    if (lost.length > 0) throw leaseLost()
  }

  /** @inheritdoc */
  status({ agent_id: agentId }: AgentCard): Promise<InboxStatus> {
    return this.#inbox.status(agentId)
  }

  /** Returns the task and the receipt of a lease. @throws InboxError LEASE_LOST, RUN_ENDED */
  async #held({ agent_id: agentId }: AgentCard, given: string): Promise<HeldLease> {
    const mark = given.indexOf(':')
    const run = given.slice(0, Math.max(0, mark))
    const receipt = given.slice(mark + 1)
    const lease = leaseOf(receipt)
    const followed = this.#inbox.tasks.get(run)
    // The queue knows whether a lease has ended meanwhile.
    const isCurrent = followed?.lease === lease && (followed.phase === 'delivered' || followed.phase === 'working')
    const state = isCurrent || run === '' ? followed : await this.#inbox.find(run)
    if (state === undefined || state.agentId !== agentId || state.lease !== lease) throw leaseLost()
    if (state.phase === 'done' && state.outcome !== undefined) {
      throw new InboxError('RUN_ENDED', `the task is over: ${state.outcome.text}`)
    }
    return { receipt, lease, state }
  }

  /** Ends a round that the agent has finished. */
  async #finish(state: KnownRun, phase: TaskPhase, receipt: string): Promise<void> {
    const next = phase === 'over' ? 'done' : 'waiting'
    if (state.phase !== next) await this.#inbox.update(state, { phase: next })
    await this.#queues.ack([receipt])
  }
}

/** The lease that a call extends to if it names none, in ms. */
const DEFAULT_LEASE_MS = 60_000

function leaseOf(receipt: string): string {
  return createHash('sha256').update(receipt).digest('hex')
}

function leaseLost(): InboxError {
  return new InboxError('LEASE_LOST', 'the lease of this receipt is over; lease the request again')
}

function headersOf(tags: Readonly<Record<string, string>>): Record<string, string> {
  const names = Object.keys(tags).filter((tag) => tag.startsWith(HEADER_TAG))
  return Object.fromEntries(names.map((tag) => [tag.slice(HEADER_TAG.length), tags[tag] ?? '']))
}
