import type { BrokerHandle, ReplyInput, RequestMessage } from '@signalbox/broker-core'
import type { HeldBytes, InFlight } from '@signalbox/http-kit/internal'
import { fairTurns, LARGE_BODY_BYTES } from '@signalbox/http-kit/internal'
import type { AgentCard, AgentOptions, AgentTarget } from '@signalbox/registry'
import { agentOptions } from '@signalbox/registry'

import type { InboxAnswers } from '../inbox/inbox-answers.ts'
import type { AgentQuery } from '../requests/agent-query.ts'
import { decodeAgentQuery } from '../requests/agent-query.ts'
import type { AgentReply } from '../requests/agent-reply.ts'
import { encodeAgentReply, refusedReply } from '../requests/agent-reply.ts'
import type { RepliesOnTheWay } from '../requests/agent-requests.ts'
import type { LoggedTasks } from '../runs/logged-tasks.ts'
import type { Runs } from '../runs/runs.ts'
import type { ServedRun } from '../runs/runs.ts'
import type { AgentBody, AgentStream } from '../stream/agent-stream.ts'
import type { EventConverter } from '../stream/events.ts'
import type { StreamLimits } from '../stream/limits.ts'
import { publishStreamCancel } from '../stream/link/messages.ts'
import type { NodeBudget } from '../stream/link/node-budget.ts'
import type { SenderOwner } from '../stream/link/sender.ts'
import type { CallResult } from './agent-call.ts'
import { ACCEPTED, ADDRESS_REFUSED, AGENT_BUSY, AGENT_GONE, SHUTTING_DOWN, storeFailure } from './agent-failures.ts'
import type { SendTo, TaskOwners } from './instances/instance-calls.ts'
import { InstanceCalls } from './instances/instance-calls.ts'
import type { ServedInstance } from './instances/instance-pool.ts'
import { CallPlace, InstancePool } from './instances/instance-pool.ts'
import type { SendingNode } from './instances/instance-requests.ts'
import { InstanceRequests } from './instances/instance-requests.ts'
import type { TaskIsolation } from './isolation/task-isolation.ts'
import { streamCancelled, streamToCancel } from './json-bodies.ts'
import type { AdmittedRequest, CallUnderWay } from './kept-requests.ts'
import { KeptRequests } from './kept-requests.ts'
import { AgentWire } from './wire/agent-wire.ts'
import { askAgent } from './wire/ask-agent.ts'

/** The state that all agents of a node share. */
export interface ServingNode extends SendingNode {
  readonly system: BrokerHandle
  /** The most calls and streams under way for one instance of an agent on this node (AgentMaxConcurrency). */
  readonly maxConcurrency: number
  /** Keeps the tasks of callers apart; undefined: all callers share them. */
  readonly isolation: TaskIsolation | undefined
  /** The instances that own tasks and streams. */
  readonly owners: TaskOwners
  /** Returns a count of the bytes that a caller's call holds. */
  readonly heldBytes: (account: string) => HeldBytes
  readonly replies: RepliesOnTheWay
  /** The runs whose answers are kept in the log; undefined: no answers are kept. */
  readonly runs: Runs | undefined
  /** The tasks that the log has; undefined: there is no log. */
  readonly loggedTasks: LoggedTasks | undefined
  /** Answers for the agents whose requests are parked. */
  readonly inbox: (() => InboxAnswers) | undefined
  readonly streamLimits: StreamLimits
  readonly streamBudget: NodeBudget
  /** Counts over all agents. */
  readonly inFlight: InFlight
}

/** The time for an agent to accept `stream_cancel`, in ms. */
const CANCEL_TIMEOUT_MS = 5_000

/** One agent on this node: answers its requests, and counts those under way. */
export class ServedAgent {
  readonly #node: ServingNode
  readonly #idle: () => void
  readonly #agentId: string
  readonly #pool: InstancePool
  readonly #calls: InstanceCalls
  readonly #requests: InstanceRequests
  #card: AgentCard
  #options: AgentOptions
  readonly #kept: KeptRequests
  #inFlight = 0
  /** The versions of A2A that the agent speaks. */
  wire: AgentWire

  /** @param idle Called each time the last call or stream under way has ended */
  constructor(node: ServingNode, card: AgentCard, idle: () => void) {
    this.#node = node
    this.#idle = idle
    this.#agentId = card.agent_id
    this.#card = card
    this.#options = agentOptions(card)
    this.#pool = new InstancePool(node.maxConcurrency)
    this.#calls = new InstanceCalls(card.agent_id, this.#pool, node.owners)
    this.#requests = new InstanceRequests(card.agent_id, node, this.#calls)
    this.wire = new AgentWire(card)
    this.#kept = new KeptRequests(card.agent_id, node, {
      admit: (request, signal) => this.#admit(request, { signal }),
      begin: (query, held, run) => this.#beginResumed(query, held, run),
      relayed: (call, relay) => this.#relayed(call, relay),
      ask: (call, query) => this.#send({ ...call, query, isolated: undefined, followed: this.#calls.followed(query) }),
      streamOf: (call, events, converter) => this.#streamOf(call, call.query.log?.run ?? '', events, converter),
    })
  }

  /** The number of calls and streams under way. */
  get inFlight(): number {
    return this.#inFlight
  }

  /** Returns the calls and streams under way by instance_id; empty for an agent without instances. */
  inFlightByInstance(): ReadonlyMap<string, number> {
    return this.#pool.inFlight()
  }

  /** `false` when the agent is not registered any more. */
  get registered(): boolean {
    return this.#options.pull || this.#pool.size > 0
  }

  /**
   * Takes over a card, or the removal of the agent.
   * @param targetOf Parses the url of an instance
   */
  update(card: AgentCard | undefined, targetOf: (url: string) => AgentTarget | undefined): void {
    if (card !== undefined) {
      this.#card = card
      if (this.wire.isOutdatedBy(card)) this.wire = new AgentWire(card)
    }
    this.#options = agentOptions(card ?? {})
    this.#pool.update(card, targetOf)
  }

  /**
   * Answers a Query on the agent's channel.
   * @throws TypeError for a Query that the gateway did not encode
   */
  async serve(message: RequestMessage): Promise<ReplyInput> {
    return encodeAgentReply(await this.answer(decodeAgentQuery(message), message))
  }

  /** Sends a request to the agent, or refuses it. */
  answer(query: AgentQuery, message: Pick<RequestMessage, 'signal'>): AgentReply | Promise<AgentReply> {
    const reply = this.#answer(query, message)
    return reply instanceof Promise ? reply.catch(storeFailure) : reply
  }

  #answer(query: AgentQuery, message: Pick<RequestMessage, 'signal'>): AgentReply | Promise<AgentReply> {
    if (!this.registered) return AGENT_GONE
    const { durable, offline, pull } = this.#options
    const inbox = pull || offline === 'queue' ? this.#node.inbox?.() : undefined
    if (inbox === undefined) return durable ? this.#askOrRead(query, message) : this.#ask(query, message)
    return pull ? inbox.answer(query, this.#card) : this.#callOrPark(query, message, inbox)
  }

  /** Asks the agent, or reads the task in the log if the agent is away. */
  async #askOrRead(query: AgentQuery, message: Pick<RequestMessage, 'signal'>): Promise<AgentReply> {
    const reply = await this.#ask(query, message)
    if (reply.failure !== 'unreachable' && reply.failure !== 'unavailable') return reply
    return (await this.#node.loggedTasks?.answer(query, this.#card)) ?? reply
  }

  /** Sends a request to the agent, or parks it if the agent certainly did not get it. */
  async #callOrPark(
    query: AgentQuery,
    message: Pick<RequestMessage, 'signal'>,
    inbox: InboxAnswers,
  ): Promise<AgentReply> {
    if (await inbox.owns(query, this.#card)) return inbox.answer(query, this.#card)
    const reply = await this.#askOrRead(query, message)
    const isAway = reply.failure === 'unreachable' && reply.unsent === true && !reply.executed
    return isAway && inbox.isSend(query) ? inbox.answer(query, this.#card) : reply
  }

  #ask(query: AgentQuery, message: Pick<RequestMessage, 'signal'>): AgentReply | Promise<AgentReply> {
    if (!this.#pool.permitted) return ADDRESS_REFUSED
    if (this.#node.stopped.aborted) return SHUTTING_DOWN
    const held = this.#node.heldBytes(query.account)
    if (query.mode === 'resume') return this.#kept.resume(query, held)
    const short = held.refusesBody(Infinity)
    if (short !== undefined) return { ...refusedReply(short), unsent: true }
    // This node reads the request again, and sends it.
    const { byteLength } = query.body
    if (byteLength > LARGE_BODY_BYTES) fairTurns.restAfter(query.account, byteLength)
    const isolated = this.#node.isolation?.of(query, {
      agentId: this.#agentId,
      agentOwner: this.#card.registered_by,
      maxBytes: this.#node.maxResponseBytes,
    })
    const admitted = () =>
      query.log === undefined
        ? this.#admit({ query, held, isolated }, message)
        : this.#kept.keep({ query, held, isolated }, query.log)
    if (isolated?.namesTasks !== true) return admitted()
    return isolated.refusal().then((refusal) => refusal ?? admitted())
  }

  #admit(request: AdmittedRequest, message: Pick<RequestMessage, 'signal'>): AgentReply | Promise<AgentReply> {
    const { query } = request
    const followed = this.#calls.followed(query)
    const instance = this.#calls.choose(query, followed)
    if (instance === undefined) return AGENT_BUSY
    const call = { ...request, place: this.#begin(instance), followed }
    // Only a stream reads the signal: to make one costs as much as the rest of the request in the engine.
    if (query.mode === 'stream') return this.#stream(call, query.streamId ?? '', message.signal)
    const reply = this.#call(call)
    if (query.mode === 'call') return reply
    reply.catch((error: unknown) => this.#node.failed(error))
    return ACCEPTED
  }

  /** Runs a call to its end, even if the requester disconnects: that does not undo the agent's work. */
  async #call(call: CallUnderWay): Promise<AgentReply> {
    try {
      const streamId = streamToCancel(call.query.body)
      if (streamId !== undefined) await publishStreamCancel(this.#node.system, streamId)
      const { reply } = await this.#send(call)
      return reply
    } finally {
      this.#replied(call)
      this.#finish(call.place)
    }
  }

  async #stream(call: CallUnderWay, streamId: string, requesterGone: AbortSignal): Promise<AgentReply> {
    let relay: Promise<void> | undefined
    try {
      // A node without streams does not load the relay. Before the call, so that no event of the agent waits for it.
      await import('../stream/agent-stream.ts')
      if (this.#node.stopped.aborted) return SHUTTING_DOWN
      const result = await this.#send(call, requesterGone)
      if (result.events !== undefined) {
        const stream = await this.#streamOf(call, streamId, result.events, result.converter)
        relay = this.#relayed(call, () => this.#relay(call, streamId, stream))
        relay.catch((error: unknown) => this.#node.failed(error))
      } else if (requesterGone.aborted && isCancelled(call.query)) await this.#notifyCancelled(call, streamId)
      return result.reply
    } finally {
      if (relay === undefined) {
        this.#replied(call)
        this.#finish(call.place)
      }
    }
  }

  async #streamOf(
    { held, query, run }: CallUnderWay,
    streamId: string,
    response: AgentBody,
    given: EventConverter | undefined,
  ): Promise<AgentStream> {
    const { AgentStream: Stream } = await import('../stream/agent-stream.ts')
    const { runs, stopped, system, streamLimits: limits, streamBudget: budget } = this.#node
    const { account } = query
    const signal = run === undefined ? stopped : runs?.leaving
    const converter = given ?? run?.writer.events(undefined)
    const sink = run && ((owner: SenderOwner) => run.writer.attach(owner))
    return new Stream({ system, streamId, response, converter, sink, limits, budget, held, account, signal })
  }

  /** Returns true if the agent takes a connection. Any answer counts. */
  async answers(): Promise<boolean> {
    const instance = this.#pool.choose()
    if (instance === undefined) return false
    const account = `client:${this.#card.registered_by}`
    const query: AgentQuery = {
      ...NO_QUERY,
      callerId: this.#card.registered_by,
      account,
      rest: { method: 'GET', path: '' },
    }
    return this.#placed(instance, query, async (call) => {
      const { reply } = await this.#requests.send(call)
      return reply.status !== 0 || reply.failure === 'invalid_response'
    })
  }

  /** Sends a request for the gateway itself. Resolves with the result of `use`; undefined if the agent is busy. */
  async deliver<T>(query: AgentQuery, use: (result: CallResult) => Promise<T>): Promise<T | undefined> {
    const instance = this.#calls.choose(query, this.#calls.followed(query))
    if (instance === undefined) return undefined
    return this.#placed(instance, query, async (call) => use(await this.#send(call)))
  }

  async #placed<T>(instance: ServedInstance, query: AgentQuery, use: (call: CallUnderWay) => Promise<T>): Promise<T> {
    const held = this.#node.heldBytes(query.account)
    const call = { place: this.#begin(instance), query, followed: this.#calls.followed(query), held }
    try {
      return await use(call)
    } finally {
      held.release()
      this.#finish(call.place)
    }
  }

  /** Begins a call that continues a run; undefined if the agent is busy. */
  #beginResumed(query: AgentQuery, held: HeldBytes, run: ServedRun): CallUnderWay | undefined {
    const instance = this.#pool.choose()
    return instance && { place: this.#begin(instance), query, followed: undefined, held, run }
  }

  async #relayed(call: CallUnderWay, relay: () => Promise<void>): Promise<void> {
    try {
      await relay()
    } finally {
      call.held.release()
      call.run?.end()
      this.#finish(call.place)
    }
  }

  async #relay(call: CallUnderWay, streamId: string, stream: AgentStream): Promise<void> {
    const { cancelled } = await stream.run()
    if (call.run !== undefined) await this.#kept.recover(call, call.run)
    else if (cancelled && isCancelled(call.query)) await this.#notifyCancelled(call, streamId)
  }

  /**
   * Sends `stream_cancel` to the instance, once, as part of the stream's own place among the agent's
   * calls (A10).
   */
  async #notifyCancelled({ place, query, held }: CallUnderWay, streamId: string): Promise<void> {
    const body = streamCancelled(streamId)
    await this.#requests.send({ place, query: { ...query, mode: 'accept', body, timeoutMs: CANCEL_TIMEOUT_MS }, held })
  }

  /** The reply is on its way to the caller's node; the reply to a notification is dropped. */
  #replied({ query, held }: CallUnderWay): void {
    this.#node.replies.sent(query.mode === 'accept' ? undefined : query.requestId, held)
  }

  async #send(call: CallUnderWay, requesterGone?: AbortSignal): Promise<CallResult> {
    const { place, followed, held, isolated } = call
    const query = this.#inKnownVersion(call.query)
    const { wire } = query
    const send: SendTo = (at, one, tap) =>
      this.#requests.send({ place: at, query: one, held, isolated, tap }, requesterGone)
    const result = await this.#calls.send(
      place,
      query,
      followed,
      wire === undefined ? send : (at, one) => askAgent(one, wire, this.wire, (asked, tap) => send(at, asked, tap)),
      () => requesterGone?.aborted !== true && !this.#node.stopped.aborted,
    )
    if (isolated === undefined || result.events !== undefined) return result
    return { ...result, reply: await isolated.shown(result.reply) }
  }

  /** An agent without JSON-RPC understands the dialect only if it is translated, as a request of A2A 0.3. */
  #inKnownVersion(query: AgentQuery): AgentQuery {
    if (!this.wire.rest || query.wire !== undefined) return query
    const answer = query.mode === 'stream' ? 'events' : 'agent'
    return { ...query, wire: { agentId: this.#agentId, version: '0.3', answer } }
  }

  #begin(instance: ServedInstance): CallPlace {
    this.#inFlight++
    this.#node.inFlight.begin()
    return new CallPlace(this.#pool, instance)
  }

  #finish(place: CallPlace): void {
    place.leave()
    this.#node.inFlight.finish()
    if (--this.#inFlight === 0) this.#idle()
  }
}

/** A question whether an agent answers. */
const NO_QUERY = { mode: 'call', body: new Uint8Array(0), timeoutMs: 5_000, hops: 1, headers: {} } as const

/**
 * Returns true if the end of a stream's client cancels the agent's work. A client that speaks an official version of
 * A2A may come back for the task, and has a method to cancel it.
 */
function isCancelled({ wire }: AgentQuery): boolean {
  return wire?.answer !== 'native' && wire?.answer !== 'rest'
}
