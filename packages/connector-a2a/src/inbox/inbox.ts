import { createHash, randomUUID } from 'node:crypto'

import type { BrokerHandle, QueueDelivery, WorkerPool } from '@signalbox/broker-core'
import { encodeText, isBrokerError } from '@signalbox/broker-core'
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
import { agentOptions, InboxError } from '@signalbox/registry'

import { HEADER_TAG } from '../requests/agent-query.ts'
import { lastEventOf } from '../runs/chunks.ts'
import type { RunLog } from '../runs/run-log.ts'
import type { TaskPhase } from '../runs/seen-task.ts'
import { isObject, parsedJson } from '../wire/index.ts'
import { assertBounded, assertStates, completeEvents } from './inbox-events.ts'
import type { ParkedIndex } from './parked-index.ts'
import type { KnownRun, ParkedOutcome, ParkedRun } from './parked-run.ts'
import { ParkedRuns } from './parked-runs.ts'
import { outcomeEvent, TaskLog } from './task-log.ts'

export interface InboxOptions {
  readonly system: BrokerHandle
  readonly log: RunLog
  /** The time for which the state of a task is kept after its last change, in ms. */
  readonly keepMs: number
  readonly failed: (error: unknown) => void
}

/** A message to park. */
export interface ParkedMessage {
  readonly run: string
  readonly callerId: string
  readonly contextId: string
  /** A SendMessageRequest of A2A 1.0. */
  readonly request: JsonObject
  readonly headers: Readonly<Record<string, string>>
  /** The state of the task that the message continues; undefined for a new task. */
  readonly after: KnownRun | undefined
  /** The first event of the log that belongs to this message: the task as it is now. */
  readonly task: JsonObject
}

/** The queue of the messages whose attempts are used, of all agents. */
const DEAD = '_AGENTS_.inbox-dead'

/** The time between two looks for messages that were parked for too long, in ms. */
const SWEEP_MS = 2_000

/** A lessee that was heard within this time is expected to come back, in ms. */
const HEARD_MS = 60_000

/**
 * The inboxes of agents: requests that wait in queues for agents that call in, and the events that these agents write
 * about them. The queue decides which lessee has a request. The state of a task decides which item of the queue counts, so that
 * an item that arrives twice does no harm.
 */
export class Inbox implements AgentInbox {
  readonly #options: InboxOptions
  readonly #runs: ParkedRuns
  readonly #taskLog: TaskLog
  readonly #heard = new Map<string, number>()
  readonly #sweep: NodeJS.Timeout
  #dead: WorkerPool | undefined

  constructor(options: InboxOptions) {
    const { system, keepMs, failed } = options
    this.#options = options
    this.#taskLog = new TaskLog(options.log)
    this.#runs = new ParkedRuns(
      system,
      keepMs,
      ({ agentId, phase }) => {
        if (phase === 'delivered' || phase === 'working') this.#heard.set(agentId, performance.now())
      },
      failed,
    )
    this.#sweep = setInterval(() => void this.#expire().catch(failed), SWEEP_MS)
    this.#sweep.unref()
  }

  /** Begins to end the tasks whose attempts are used. Call it when there is an agent with an inbox. Idempotent. */
  open(): void {
    this.#dead ??= this.#options.system.queues.work(DEAD, {}, (message) => this.#onDead(message))
  }

  /** Resolves when the tasks are known. */
  get opened(): Promise<void> {
    return this.#runs.opened
  }

  /** The tasks of all inboxes, as this node has followed them. */
  get tasks(): ParkedIndex {
    return this.#runs.index
  }

  /**
   * Records something about a leased task. Resolves with undefined if the task has changed meanwhile.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  note(state: KnownRun, news: Pick<ParkedRun, 'isSent' | 'agentTask'>): Promise<KnownRun | undefined> {
    return this.#update(state, news)
  }

  /** Returns the last state of a task; undefined if there is none. @throws BrokerError ENGINE_UNAVAILABLE */
  find(run: string): Promise<KnownRun | undefined> {
    return this.#runs.last(run)
  }

  /** Returns true if a lessee of an agent was heard within the last minute. */
  isHeard({ agent_id: agentId }: AgentCard): boolean {
    const heard = this.#heard.get(agentId)
    return heard !== undefined && performance.now() - heard < HEARD_MS
  }

  /**
   * Parks a message. Resolves when it is durable, with false if the task has changed meanwhile.
   * @throws BrokerError QUEUE_FULL, ENGINE_UNAVAILABLE
   */
  async park(card: AgentCard, message: ParkedMessage): Promise<boolean> {
    const { run, callerId, contextId, request, headers, after, task } = message
    const { agent_id: agentId } = card
    const { queue } = agentOptions(card)
    const item = randomUUID()
    const tags: Record<string, string> = { run, item, context: contextId, caller: callerId }
    if (after !== undefined) tags['after'] = String(after.sequence)
    for (const name of Object.keys(headers)) tags[HEADER_TAG + name] = headers[name] ?? ''
    // The item first: one without a state that names it is dropped, and a state without an item would wait forever.
    await this.#options.system.queues.send(inboxQueue(agentId), {
      body: encodeText(JSON.stringify({ request, task })),
      tags,
      expirationMs: queue.ttlSeconds * 1000,
      maxReceiveCount: queue.maxAttempts,
      deadLetterQueue: DEAD,
    })
    return (
      (await this.#store(
        { run, agentId, callerId, contextId, item, expiresAt: Date.now() + queue.ttlSeconds * 1000 },
        task,
        after,
      )) !== undefined
    )
  }

  /** Records a parked message as the last one of its task. */
  async #store(
    message: Pick<ParkedRun, 'run' | 'agentId' | 'callerId' | 'contextId' | 'item' | 'expiresAt'>,
    task: JsonObject,
    after: KnownRun | undefined,
  ): Promise<KnownRun | undefined> {
    const { run } = message
    const last = after && (await this.#options.log.last(run))
    const start = last === undefined ? 0 : lastEventOf(last)
    const createdAt = after?.createdAt ?? Date.now()
    const state = { ...message, createdAt, start, phase: 'stored', attempt: 0 } as const
    const written = await this.#runs.write(state, after)
    if (written !== undefined) {
      await this.#taskLog.append(written, [{ task }], 'open')
      return written
    }
    // A node on which the item was leased first has recorded it.
    const known = await this.#runs.last(run)
    return known?.item === message.item ? known : undefined
  }

  /** @inheritdoc */
  async lease(card: AgentCard, { max, waitMs, leaseMs, signal }: InboxLeaseOptions): Promise<readonly InboxItem[]> {
    const { agent_id: agentId } = card
    const deadline = performance.now() + waitMs
    for (;;) {
      this.#heard.set(agentId, performance.now())
      const left = Math.max(0, Math.ceil(deadline - performance.now()))
      const options = { maxMessages: max, waitMs: left, leaseMs, signal }
      const deliveries = await this.#options.system.queues.receive(inboxQueue(agentId), options)
      const leased = await Promise.all(deliveries.map((delivery) => this.#lease(agentId, delivery, leaseMs)))
      const items = leased.filter((item) => item !== undefined)
      if (signal.aborted) return this.#putBack(items)
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
      // The node that parked the message may not have recorded it yet, or was lost before it did.
      const known = await this.#runs.last(run)
      const isNew = known === undefined ? after === undefined : String(known.sequence) === after
      const found = isNew
        ? await this.#store({ run, agentId, callerId, contextId, item, expiresAt }, task, known)
        : known
      if (found === undefined) continue
      if (found.item !== item || found.phase === 'done' || found.phase === 'waiting') return this.#drop(receipt)
      if (await this.#settleEnded(found)) return this.#drop(receipt)
      const delivered = await this.#runs.write({ ...found, phase: 'delivered', attempt, lease }, found)
      if (delivered === undefined) continue
      await this.#taskLog.beginAgain(delivered)
      const leaseUntil = Date.now() + leaseMs
      const headers = headersOf(tags)
      return { receipt: `${run}:${receipt}`, taskId: run, contextId, attempt, leaseUntil, callerId, headers, request }
    }
    await this.#options.system.queues.nack([receipt])
    return undefined
  }

  /** Returns the items of a lessee that has left before it got them. */
  async #putBack(items: readonly InboxItem[]): Promise<readonly InboxItem[]> {
    const receipts = items.map(({ receipt }) => receipt.slice(receipt.indexOf(':') + 1))
    if (receipts.length > 0) await this.#options.system.queues.nack(receipts)
    return []
  }

  async #drop(receipt: string): Promise<undefined> {
    await this.#options.system.queues.ack([receipt])
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
    const held = await this.#held(card, input.receipt)
    const { receipt, lease } = held
    let { state } = held
    this.#heard.set(state.agentId, performance.now())
    const { complete, phase } = completeEvents(events, state)
    const last = await this.#options.log.last(state.run)
    const accepted = last?.delivery?.lease === lease ? last.delivery.accepted : 0
    const { offset = accepted } = input
    if (offset > accepted) {
      throw new InboxError(
        'OFFSET_WRONG',
        `offset is ${offset}, and ${accepted} events of this delivery were accepted; send the events from ${accepted} on`,
      )
    }
    const fresh = complete.slice(accepted - offset)
    assertBounded(fresh, last, phase)
    const result = {
      accepted: Math.max(accepted, offset + complete.length),
      cancelRequested: state.cancel === true,
      leaseUntil: Date.now() + leaseMs,
    }
    if (state.phase === 'done' || state.phase === 'waiting') {
      if (fresh.length > 0) throw new InboxError('RUN_ENDED', 'this delivery has ended; it takes no further events')
      return result
    }
    if (fresh.length === 0 && phase !== 'open') {
      // The call that wrote the end was lost before it was over.
      await this.#finish(state, phase, receipt)
      return result
    }
    const { lost } = await this.#options.system.queues.extend([receipt], leaseMs)
    if (lost.length > 0) throw leaseLost()
    if (fresh.length > 0 && state.phase === 'delivered') {
      const working = await this.#update(state, { phase: 'working' })
      if (working === undefined) throw leaseLost()
      state = working
    }
    if (fresh.length > 0 && !(await this.#taskLog.append(state, fresh, phase, { lease, accepted }, last)))
      throw leaseLost()
    if (phase !== 'open') await this.#finish(state, phase, receipt)
    return result
  }

  /** @inheritdoc */
  async nack(
    card: AgentCard,
    { receipt: given, delayMs = 0, reject = false, reason = '' }: InboxNackInput,
  ): Promise<void> {
    const { receipt, state } = await this.#held(card, given)
    if (reject) {
      const text = reason === '' ? 'the agent has refused the request' : reason
      await this.#end(state, { state: 'TASK_STATE_FAILED', reason: 'REJECTED', text })
      await this.#options.system.queues.ack([receipt])
      return
    }
    await this.#update(state, { phase: 'stored', lease: undefined })
    const { lost } = await this.#options.system.queues.nack([receipt], { delayMs })
    if (lost.length > 0) throw leaseLost()
  }

  /** @inheritdoc */
  async status({ agent_id: agentId }: AgentCard): Promise<InboxStatus> {
    const { channels, queues } = this.#options.system
    const name = inboxQueue(agentId)
    try {
      const [{ queue }, oldest] = await Promise.all([channels.info('queues', name), queues.oldestWaiting(name)])
      const { waiting = 0, delayed = 0, inFlight = 0 } = queue ?? {}
      const ageMs = oldest === undefined ? 0 : Math.max(0, Date.now() - oldest)
      return { waiting: waiting + delayed, inFlight, oldestSeconds: Math.round(ageMs / 1000) }
    } catch (error) {
      // The queue begins with the first request.
      if (isBrokerError(error, 'CHANNEL_NOT_FOUND')) return { waiting: 0, inFlight: 0, oldestSeconds: 0 }
      throw error
    }
  }

  /**
   * Cancels a task, or asks its lessee to. Resolves with the state of the task, or undefined for one that is over.
   * @param text The reason, for the caller
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async cancel(run: string, text = 'the caller has canceled it'): Promise<KnownRun | undefined> {
    for (;;) {
      const state = await this.#runs.last(run)
      if (state === undefined || state.phase === 'done') return undefined
      if (state.phase === 'stored' || state.phase === 'waiting') {
        const ended = await this.#end(state, {
          state: 'TASK_STATE_CANCELED',
          reason: 'CANCELED',
          text,
        })
        if (ended !== undefined) return ended
      } else {
        const asked = await this.#runs.write({ ...state, cancel: true }, state)
        if (asked !== undefined) return asked
      }
    }
  }

  /** Writes the end that the gateway has decided, if the node that decided it was lost before. */
  async settle(run: string): Promise<void> {
    const state = await this.#runs.last(run)
    const last = state && (await this.#options.log.last(run))
    if (state?.outcome !== undefined && last?.end !== true)
      await this.#taskLog.append(state, [outcomeEvent(state, state.outcome)], 'over')
  }

  async close(): Promise<void> {
    clearInterval(this.#sweep)
    await this.#dead?.drain()
    await this.#runs.close()
  }

  /** Returns the task and the receipt of a lease. @throws InboxError LEASE_LOST, RUN_ENDED */
  async #held({ agent_id: agentId }: AgentCard, given: string) {
    const mark = given.indexOf(':')
    const run = given.slice(0, Math.max(0, mark))
    const receipt = given.slice(mark + 1)
    const lease = leaseOf(receipt)
    const state = run === '' ? undefined : await this.#runs.last(run)
    if (state === undefined || state.agentId !== agentId || state.lease !== lease) throw leaseLost()
    if (state.phase === 'done' && state.outcome !== undefined) {
      throw new InboxError('RUN_ENDED', `the task is over: ${state.outcome.text}`)
    }
    return { receipt, lease, state }
  }

  /** Changes the state of a leased task. Resolves with undefined if the lease is another's, or the task is over. */
  async #update(state: KnownRun, change: Partial<ParkedRun>): Promise<KnownRun | undefined> {
    let known: KnownRun | undefined = state
    while (known !== undefined && known.lease === state.lease && known.phase !== 'done') {
      const written = await this.#runs.write({ ...known, ...change }, known)
      if (written !== undefined) return written
      // Its caller has asked to cancel it meanwhile.
      known = await this.#runs.last(state.run)
    }
    return undefined
  }

  /** Ends a round that the agent has finished. */
  async #finish(state: KnownRun, phase: TaskPhase, receipt: string): Promise<void> {
    const next = phase === 'over' ? 'done' : 'waiting'
    if (state.phase !== next) await this.#update(state, { phase: next })
    await this.#options.system.queues.ack([receipt])
  }

  /** Ends the round of a state whose last events did. Resolves with false for one that goes on. */
  async #settleEnded(state: KnownRun): Promise<boolean> {
    const last = await this.#options.log.last(state.run)
    const isOver = last?.end === true
    if (isOver) await this.#runs.write({ ...state, phase: 'done' }, state)
    return isOver
  }

  /** Ends a task in place of its agent. Resolves with undefined if it has changed meanwhile. */
  async #end(state: KnownRun, outcome: ParkedOutcome): Promise<KnownRun | undefined> {
    const ended = await this.#runs.write({ ...state, phase: 'done', outcome }, state)
    if (ended !== undefined) await this.#taskLog.append(ended, [outcomeEvent(ended, outcome)], 'over')
    return ended
  }

  async #onDead({ tags }: { readonly tags: Readonly<Record<string, string>> }): Promise<void> {
    const { run = '', item } = tags
    const state = await this.#runs.last(run)
    if (state === undefined || state.item !== item || state.phase === 'done' || state.phase === 'waiting') return
    const text = `no delivery of ${state.attempt} was answered`
    await this.#end(state, { state: 'TASK_STATE_FAILED', reason: 'DELIVERY_FAILED', text })
  }

  /** Ends the tasks whose messages were parked for too long. Every node tries, and one succeeds. */
  async #expire(): Promise<void> {
    const now = Date.now()
    for (const state of this.tasks.expired(now)) {
      const text = 'the agent did not fetch the request in time'
      await this.#end(state, { state: 'TASK_STATE_FAILED', reason: 'DELIVERY_EXPIRED', text })
    }
    this.tasks.forget(now - this.#options.keepMs)
  }
}

/** The lease that a call extends to if it names none, in ms. */
const DEFAULT_LEASE_MS = 60_000

/** Returns the queue of an agent's requests. */
export function inboxQueue(agentId: string): string {
  return `_AGENTS_.inbox/${agentId}`
}

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

/** Returns true for an error of a queue that takes no further message. */
export function isFull(error: unknown): boolean {
  return isBrokerError(error, 'QUEUE_FULL')
}
