import type { Buffer } from 'node:buffer'

import { decodeText, isBrokerError } from '@signalbox/broker-core'
import { pauseAfter, retry } from '@signalbox/broker-core/internal'
import type { JsonObject } from '@signalbox/http-kit'
import type { AgentCard, InboxItem } from '@signalbox/registry'
import { agentOptions, InboxError } from '@signalbox/registry'

import type { AgentQuery } from '../requests/agent-query.ts'
import type { TaskPhase } from '../runs/seen-task.ts'
import { EventReader } from '../stream/event-reader.ts'
import type { EventConverter } from '../stream/events.ts'
import type { CallResult } from '../subscriber/agent-call.ts'
import type { A2aMethod } from '../wire/index.ts'
import { isObject, METHODS, requestTo } from '../wire/index.ts'
import { AgentAnswers, renamed, taskIn } from './agent-answers.ts'
import { phaseAfter } from './inbox-events.ts'
import type { Leases } from './leases.ts'
import type { Inbox } from './inbox.ts'
import type { KnownRun, ParkedPhase } from './parked-index.ts'

/** An agent that is called, and that may be away. */
export interface CalledAgent {
  /** Returns true if the agent takes a connection. */
  answers(): Promise<boolean>
  /** Sends a request. Resolves with the result of `use`; undefined if the agent is busy. */
  deliver<T>(query: AgentQuery, use: (result: CallResult) => Promise<T>): Promise<T | undefined>
}

export interface OfflineDeliveryOptions {
  readonly inbox: Inbox
  readonly leases: Leases
  /** Returns the card of an agent that this node serves, and the agent; undefined for any other. */
  readonly find: (agentId: string) => { readonly card: AgentCard; readonly agent: CalledAgent } | undefined
  readonly maxEventBytes: number
  readonly timeoutMs: number
  readonly failed: (error: unknown) => void
}

/** The time between two looks for agents that have come back, in ms. */
const LOOK_MS = 1_000

/** The longest time between two attempts to reach an agent that is away, in ms. */
const LONGEST_PAUSE_MS = 60_000

/** The requests that are delivered to one agent at the same time. */
const AT_ONCE = 8

/** The requests of a node that is lost are with another one after this time. */
const LEASE_MS = 20_000
const RENEW_MS = LEASE_MS / 3

/** The number of attempts without any news of a task after which it counts as lost. */
const ATTEMPTS = 6
const BACKOFF = { firstMs: 1_000, longestMs: 10_000 }

/** An agent that was not reached. */
interface Away {
  nextAt: number
  pauseMs: number
  lastSeen: string
}

/**
 * Delivers the requests that were parked while their agents were away, when the agents are back: a lessee of their
 * inboxes that calls them. A request that may have reached its agent is never sent again.
 */
export class OfflineDelivery {
  readonly #options: OfflineDeliveryOptions
  readonly #away = new Map<string, Away>()
  /** The agents whose inboxes are looked into now. */
  readonly #busy = new Set<string>()
  /** The time of the last look into each inbox. */
  readonly #looked = new Map<string, number>()
  /** The tasks that this node delivers, with their agents. */
  readonly #running = new Map<string, string>()
  readonly #timer: NodeJS.Timeout
  readonly #closed = new AbortController()

  constructor(options: OfflineDeliveryOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#look(), LOOK_MS)
    this.#timer.unref()
  }

  close(): void {
    clearInterval(this.#timer)
    this.#closed.abort()
  }

  #look(): void {
    const { failed, find, inbox } = this.#options
    for (const agentId of inbox.tasks.agents) {
      const found = this.#busy.has(agentId) ? undefined : find(agentId)
      if (found === undefined || agentOptions(found.card).offline !== 'queue') continue
      if (!this.#isDue(agentId, found.card)) continue
      this.#busy.add(agentId)
      this.#looked.set(agentId, performance.now())
      this.#drain(found.card, found.agent)
        .catch(failed)
        .finally(() => this.#busy.delete(agentId))
    }
  }

  /** A heartbeat ends the pause. */
  #isDue(agentId: string, { last_seen: lastSeen }: AgentCard): boolean {
    const { tasks } = this.#options.inbox
    const now = performance.now()
    const away = this.#away.get(agentId)
    if (away !== undefined && away.lastSeen === lastSeen && now < away.nextAt) return false
    if (this.#space(agentId) === 0) return false
    if (tasks.stored(agentId) > 0) return true
    // A node that is lost leaves the tasks that it delivers.
    if (now - (this.#looked.get(agentId) ?? -Infinity) < LEASE_MS / 2) return false
    return tasks.of(agentId).some(({ phase, run }) => LEASED.has(phase) && !this.#running.has(run))
  }

  /** Returns the number of requests that the agent may get now. */
  #space(agentId: string): number {
    let running = 0
    for (const one of this.#running.values()) if (one === agentId) running++
    return AT_ONCE - running
  }

  async #drain(card: AgentCard, agent: CalledAgent): Promise<void> {
    const { agent_id: agentId, last_seen: lastSeen } = card
    if (!(await agent.answers())) {
      const pauseMs = Math.min((this.#away.get(agentId)?.pauseMs ?? LOOK_MS / 2) * 2, LONGEST_PAUSE_MS)
      this.#away.set(agentId, { nextAt: performance.now() + pauseMs, pauseMs, lastSeen })
      return
    }
    this.#away.delete(agentId)
    const options = { max: this.#space(agentId), waitMs: 0, leaseMs: LEASE_MS, signal: this.#closed.signal }
    for (const item of await this.#options.leases.lease(card, options)) {
      this.#running.set(item.taskId, agentId)
      this.#deliver(card, agent, item)
        .catch(this.#options.failed)
        .finally(() => this.#running.delete(item.taskId))
    }
  }

  async #deliver(card: AgentCard, agent: CalledAgent, item: InboxItem): Promise<void> {
    const delivery = new Delivery(this.#options, card, agent, item, this.#closed.signal)
    try {
      await delivery.run()
    } catch (error) {
      // Another node has the request now, or its task is over.
      if (!(error instanceof InboxError)) throw error
    } finally {
      delivery.stop()
    }
  }
}

const LEASED: ReadonlySet<ParkedPhase> = new Set<ParkedPhase>(['delivered', 'working'])

/** One request on its way to its agent. */
class Delivery {
  readonly #options: OfflineDeliveryOptions
  readonly #card: AgentCard
  readonly #agent: CalledAgent
  readonly #item: InboxItem
  readonly #closed: AbortSignal
  readonly #renewal: NodeJS.Timeout
  /** The calls of a stream, of a cancellation and of the renewal must not overtake each other. */
  #writing: Promise<void> = Promise.resolve()
  #offset = 0
  #phase: TaskPhase = 'open'
  #agentTask: string | undefined
  /** The id of the agent's task as it is recorded. */
  #noted: string | undefined
  #isCancelled = false

  constructor(
    options: OfflineDeliveryOptions,
    card: AgentCard,
    agent: CalledAgent,
    item: InboxItem,
    closed: AbortSignal,
  ) {
    this.#options = options
    this.#card = card
    this.#agent = agent
    this.#item = item
    this.#closed = closed
    this.#renewal = setInterval(() => void this.#write([]).catch(() => {}), RENEW_MS)
    this.#renewal.unref()
  }

  stop(): void {
    clearInterval(this.#renewal)
  }

  /** @throws InboxError LEASE_LOST, RUN_ENDED */
  async run(): Promise<void> {
    const state = await this.#state()
    this.#agentTask = state.agentTask
    this.#noted = state.agentTask
    if (state.isSent !== true) {
      if (!(await this.#send(state))) return
    } else if (this.#agentTask === undefined) {
      // The node that has sent it was lost before the agent named a task.
      await this.#fail('OUTCOME_UNKNOWN', 'the request may have run, and its outcome is lost; it was not sent again')
    }
    await this.#follow()
  }

  async #state(): Promise<KnownRun> {
    const state = await this.#options.inbox.find(this.#item.taskId)
    if (state === undefined) throw new InboxError('LEASE_LOST', 'the task is not known')
    return state
  }

  /** Sends the request, and writes its answer. Resolves with false if it certainly was not sent: then it is parked again. */
  async #send(state: KnownRun): Promise<boolean> {
    const { inbox, leases } = this.#options
    // Before the first byte: a node that is lost from here on leaves a request that is not sent again.
    const marked = await inbox.update(state, { isSent: true })
    if (marked === undefined) return false
    const capabilities: unknown = this.#card.capabilities
    const method = isObject(capabilities) && capabilities['streaming'] === false ? METHODS.send : METHODS.stream
    const { message, ...params } = this.#item.request
    const { taskId: _, ...content } = isObject(message) ? message : {}
    const forAgent = { ...content, ...(state.agentTask === undefined ? {} : { taskId: state.agentTask }) }
    const outcome = await this.#call(method, { ...params, message: forAgent })
    if (outcome === 'unsent') {
      const last = await this.#state()
      await inbox.update(last, { isSent: false })
      const delayMs = Math.min(LOOK_MS * 2 ** (this.#item.attempt - 1), LONGEST_PAUSE_MS)
      await leases.nack(this.#card, { receipt: this.#item.receipt, delayMs })
      return false
    }
    return true
  }

  /** Reads the task at its agent until the delivery is over. */
  async #follow(): Promise<void> {
    for (let failures = 0; this.#phase === 'open' && !this.#closed.aborted; failures++) {
      if (this.#agentTask === undefined) {
        await this.#fail('AGENT_LOST', 'the connection to the agent was lost before it named a task')
        return
      }
      if (failures >= ATTEMPTS) {
        await this.#fail('AGENT_LOST', 'the agent does not know the task any more, or cannot be reached')
        return
      }
      await pauseAfter(failures + 1, { signal: this.#closed, backoff: BACKOFF })
      if (this.#isCancelled) await this.#call(METHODS.cancel, { id: this.#agentTask })
      const outcome = this.#phase === 'open' ? await this.#call(METHODS.get, { id: this.#agentTask }) : 'answered'
      if (outcome === 'answered') failures = 0
    }
  }

  async #fail(reason: string, text: string): Promise<void> {
    const message = { messageId: `${this.#item.taskId}-end`, role: 'ROLE_AGENT', parts: [{ text }] }
    const status = { state: 'TASK_STATE_FAILED', timestamp: new Date().toISOString(), message }
    await this.#write([{ statusUpdate: { status, metadata: { 'signalbox.reason': reason } } }])
  }

  /** Calls a method of the agent in the name of the caller, and writes its answer. */
  async #call(method: A2aMethod, params: JsonObject): Promise<'answered' | 'refused' | 'unsent'> {
    const { callerId, headers, taskId } = this.#item
    const { agent_id: agentId } = this.#card
    const answers = new AgentAnswers(method)
    const query: AgentQuery = {
      mode: method.streams ? 'stream' : 'call',
      body: requestTo(method, '1.0', params),
      callerId,
      account: `client:${callerId}`,
      timeoutMs: this.#options.timeoutMs,
      hops: 1,
      headers,
      streamId: taskId,
      wire: { agentId, version: '1.0', answer: 'native' },
      log: { agentId, run: taskId, events: (wire) => answers.from(wire) },
    }
    const outcome = await this.#agent.deliver(query, async ({ reply, events, converter }) => {
      if (events !== undefined && converter !== undefined) {
        await this.#relay(events, converter, answers)
        return 'answered'
      }
      if (reply.failure !== undefined) return reply.unsent === true ? 'unsent' : 'refused'
      answers.add(decodeText(reply.body) ?? '')
      const { error } = answers
      await this.#write(answers.take())
      if (error === undefined) return 'answered'
      if (method.operation === 'send' || method.operation === 'stream') {
        await this.#fail('AGENT_ERROR', `the agent has refused the request: ${error}`)
        return 'answered'
      }
      return 'refused'
    })
    return outcome ?? 'unsent'
  }

  /** Writes the events of a stream at the pace at which they are durable. A stream that breaks off is followed. */
  async #relay(events: AsyncIterable<Buffer>, converter: EventConverter, answers: AgentAnswers): Promise<void> {
    const reader = new EventReader(this.#options.maxEventBytes, (event) => converter.next(event))
    try {
      for await (const chunk of events) {
        if (!reader.feed(chunk)) return
        await this.#write(answers.take())
        if (this.#phase !== 'open') return
      }
      reader.end()
      await this.#write(answers.take())
    } catch (error) {
      if (error instanceof InboxError) throw error
    }
  }

  /** Writes results of the agent as events of the task, one call after another; without any, extends the lease. */
  #write(results: readonly JsonObject[]): Promise<void> {
    const written = this.#writing.then(() => this.#writeNow(results))
    this.#writing = written.catch(() => {})
    return written
  }

  async #writeNow(results: readonly JsonObject[]): Promise<void> {
    if (this.#phase !== 'open') return
    const { contextId, receipt, taskId } = this.#item
    const events: JsonObject[] = []
    for (const result of results) {
      this.#agentTask ??= taskIn(result)
      events.push(renamed(result, taskId, contextId))
      this.#phase = phaseAfter(result)
      if (this.#phase !== 'open') break
    }
    if (this.#agentTask !== this.#noted) {
      // By it, another node can follow the task.
      await this.#options.inbox.update(await this.#state(), { agentTask: this.#agentTask })
      this.#noted = this.#agentTask
    }
    const input = { receipt, offset: this.#offset, events, leaseMs: LEASE_MS }
    // While the store takes no writes, the agent waits.
    const { accepted, cancelRequested } = await retry(() => this.#options.leases.relay(this.#card, input), {
      mayRetry: (error) => isBrokerError(error, 'ENGINE_UNAVAILABLE'),
      signal: this.#closed,
    })
    this.#offset = accepted
    if (cancelRequested && !this.#isCancelled) {
      this.#isCancelled = true
      if (this.#agentTask !== undefined && this.#phase === 'open')
        void this.#call(METHODS.cancel, { id: this.#agentTask }).catch(() => {})
    }
  }
}
