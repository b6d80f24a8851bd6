import type { Buffer } from 'node:buffer'

import { decodeText, encodeText } from '@signalbox/broker-core'
import { pauseAfter } from '@signalbox/broker-core/internal'
import type { JsonObject } from '@signalbox/http-kit'
import type { AgentCard, InboxItem } from '@signalbox/registry'
import { agentOptions, InboxError } from '@signalbox/registry'

import type { AgentQuery } from '../requests/agent-query.ts'
import type { TaskPhase } from '../runs/seen-task.ts'
import { EventReader } from '../stream/event-reader.ts'
import type { EventConverter } from '../stream/events.ts'
import type { CallResult } from '../subscriber/agent-call.ts'
import type { A2aMethod } from '../wire/index.ts'
import { isObject, METHODS } from '../wire/index.ts'
import { AgentAnswers, renamed, taskIn } from './agent-answers.ts'
import { phaseAfter } from './inbox-events.ts'
import type { Inbox } from './inbox.ts'
import type { KnownRun } from './parked-run.ts'

/** An agent that is called, and that may be away. */
export interface CalledAgent {
  /** Returns true if the agent takes a connection. */
  answers(): Promise<boolean>
  /** Sends a request. Resolves with the result of `use`; undefined if the agent is busy. */
  deliver<T>(query: AgentQuery, use: (result: CallResult) => Promise<T>): Promise<T | undefined>
}

export interface OfflineDeliveryOptions {
  readonly inbox: Inbox
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
  readonly #busy = new Set<string>()
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
      if (!inbox.tasks.of(agentId).some(({ phase }) => phase === 'stored' || phase === 'delivered')) continue
      if (!this.#isDue(agentId, found.card)) continue
      this.#busy.add(agentId)
      this.#drain(found.card, found.agent)
        .catch(failed)
        .finally(() => this.#busy.delete(agentId))
    }
  }

  /** A heartbeat ends the pause. */
  #isDue(agentId: string, { last_seen: lastSeen }: AgentCard): boolean {
    const away = this.#away.get(agentId)
    return away === undefined || away.lastSeen !== lastSeen || performance.now() >= away.nextAt
  }

  async #drain(card: AgentCard, agent: CalledAgent): Promise<void> {
    const { agent_id: agentId, last_seen: lastSeen } = card
    if (!(await agent.answers())) {
      const pauseMs = Math.min((this.#away.get(agentId)?.pauseMs ?? LOOK_MS / 2) * 2, LONGEST_PAUSE_MS)
      this.#away.set(agentId, { nextAt: performance.now() + pauseMs, pauseMs, lastSeen })
      return
    }
    this.#away.delete(agentId)
    const options = { max: AT_ONCE, waitMs: 0, leaseMs: LEASE_MS, signal: this.#closed.signal }
    const items = await this.#options.inbox.lease(card, options)
    await Promise.all(items.map((item) => this.#deliver(card, agent, item)))
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

/** One request on its way to its agent. */
class Delivery {
  readonly #options: OfflineDeliveryOptions
  readonly #card: AgentCard
  readonly #agent: CalledAgent
  readonly #item: InboxItem
  readonly #closed: AbortSignal
  readonly #renewal: NodeJS.Timeout
  #offset = 0
  #phase: TaskPhase = 'open'
  #agentTask: string | undefined
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
    const { inbox } = this.#options
    // Before the first byte: a node that is lost from here on leaves a request that is not sent again.
    const marked = await inbox.note(state, { isSent: true })
    if (marked === undefined) return false
    const capabilities: unknown = this.#card.capabilities
    const method = isObject(capabilities) && capabilities['streaming'] === false ? METHODS.send : METHODS.stream
    const { message, ...params } = this.#item.request
    const { taskId: _, ...content } = isObject(message) ? message : {}
    const forAgent = { ...content, ...(state.agentTask === undefined ? {} : { taskId: state.agentTask }) }
    const outcome = await this.#call(method, { ...params, message: forAgent })
    if (outcome === 'unsent') {
      const last = await this.#state()
      await inbox.note(last, { isSent: false })
      await inbox.nack(this.#card, { receipt: this.#item.receipt, delayMs: LOOK_MS })
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
      body: encodeText(JSON.stringify({ jsonrpc: '2.0', id: 1, method: method.names['1.0'], params })),
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

  /** Writes results of the agent as events of the task; without any, extends the lease. */
  async #write(results: readonly JsonObject[]): Promise<void> {
    if (this.#phase !== 'open') return
    const { inbox } = this.#options
    const { contextId, receipt, taskId } = this.#item
    const events: JsonObject[] = []
    for (const result of results) {
      this.#agentTask ??= taskIn(result)
      events.push(renamed(result, taskId, contextId))
      this.#phase = phaseAfter(result)
      if (this.#phase !== 'open') break
    }
    if (this.#agentTask !== undefined && events.length > 0) await this.#noteTask(this.#agentTask)
    const { accepted, cancelRequested } = await inbox.relay(this.#card, {
      receipt,
      offset: this.#offset,
      events,
      leaseMs: LEASE_MS,
    })
    this.#offset = accepted
    if (cancelRequested && !this.#isCancelled) {
      this.#isCancelled = true
      if (this.#agentTask !== undefined && this.#phase === 'open')
        void this.#call(METHODS.cancel, { id: this.#agentTask }).catch(() => {})
    }
  }

  /** Records the task's id at the agent, by which another node can follow it. */
  async #noteTask(agentTask: string): Promise<void> {
    const state = await this.#state()
    if (state.agentTask !== agentTask) await this.#options.inbox.note(state, { agentTask })
  }
}
