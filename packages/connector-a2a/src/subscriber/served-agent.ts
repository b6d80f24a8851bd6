import type { BrokerHandle, ReplyInput, RequestMessage } from '@signalbox/broker-core'
import type { InFlight } from '@signalbox/http-kit'
import type { AgentQuery, AgentReply } from '@signalbox/registry'
import { decodeAgentQuery, encodeAgentReply } from '@signalbox/registry'

import { publishStreamCancel, relayAgentStream } from '../stream/index.ts'
import type { NodeBudget, StreamLimits } from '../stream/index.ts'
import type { CallResult } from './agent-call.ts'
import { AgentCall } from './agent-call.ts'
import { ACCEPTED, ADDRESS_REFUSED, AGENT_BUSY, AGENT_GONE, SHUTTING_DOWN, unreachable } from './agent-failures.ts'
import type { AgentTarget } from './agent-target.ts'
import { streamCancelled, streamToCancel } from './stream-cancel.ts'
import type { AgentWire } from './wire/agent-wire.ts'
import { speak } from './wire/speak.ts'

/** The state that all agents of a node share. */
export interface ServingNode {
  readonly system: BrokerHandle
  /** The largest response of an agent, in bytes (AgentMaxResponseBytes). */
  readonly maxResponseBytes: number
  /** The most calls and streams under way for one agent on this node (AgentMaxConcurrency). */
  readonly maxConcurrency: number
  readonly streamLimits: StreamLimits
  readonly streamBudget: NodeBudget
  /** Counts over all agents. */
  readonly inFlight: InFlight
  readonly calls: Set<AgentCall>
  /** Aborted when the node stops serving. */
  readonly stopped: AbortSignal
  /** Called for a failure that is reported to no client. */
  failed(error: unknown): void
}

/** The time for an agent to accept `stream_cancel`, in ms. */
const CANCEL_TIMEOUT_MS = 5_000

/** One agent on this node: answers its requests, and counts those under way. */
export class ServedAgent {
  readonly #node: ServingNode
  readonly #idle: () => void
  #inFlight = 0
  /** The agent's URL; undefined when it is not registered any more. */
  target: AgentTarget | undefined
  /** The versions of A2A that the agent speaks. */
  wire: AgentWire

  /** @param idle Called each time the last call or stream under way has ended */
  constructor(node: ServingNode, target: AgentTarget, wire: AgentWire, idle: () => void) {
    this.#node = node
    this.#idle = idle
    this.target = target
    this.wire = wire
  }

  /** The number of calls and streams under way. */
  get inFlight(): number {
    return this.#inFlight
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
    const { target } = this
    const { stopped, maxConcurrency } = this.#node
    if (target === undefined) return AGENT_GONE
    if (!target.permitted) return ADDRESS_REFUSED
    if (stopped.aborted) return SHUTTING_DOWN
    if (this.#inFlight >= maxConcurrency) return AGENT_BUSY
    if (query.mode === 'stream') return this.#stream(target, query, query.streamId ?? '', message.signal)
    const reply = this.#call(target, query)
    if (query.mode === 'call') return reply
    reply.catch((error: unknown) => this.#node.failed(error))
    return ACCEPTED
  }

  /** Runs a call to its end, even if the requester disconnects: that does not undo the agent's work. */
  async #call(target: AgentTarget, query: AgentQuery): Promise<AgentReply> {
    this.#begin()
    try {
      const streamId = streamToCancel(query.body)
      if (streamId !== undefined) await publishStreamCancel(this.#node.system, streamId)
      const { reply } = await this.#send(target, query)
      return reply
    } finally {
      this.#finish()
    }
  }

  async #stream(
    target: AgentTarget,
    query: AgentQuery,
    streamId: string,
    requesterGone: AbortSignal,
  ): Promise<AgentReply> {
    this.#begin()
    let relayed: CallResult | undefined
    try {
      const result = await this.#send(target, query, requesterGone)
      if (result.events !== undefined) relayed = result
      if (relayed === undefined && requesterGone.aborted && isCancelled(query))
        await this.#notifyCancelled(target, query, streamId)
      return result.reply
    } finally {
      if (relayed === undefined) this.#finish()
      else this.#relay(target, query, streamId, relayed).catch((error: unknown) => this.#node.failed(error))
    }
  }

  async #relay(
    target: AgentTarget,
    query: AgentQuery,
    streamId: string,
    { events: response, converter: events }: CallResult,
  ): Promise<void> {
    const { system, streamLimits: limits, streamBudget: budget, stopped: signal } = this.#node
    try {
      if (response === undefined) return
      const { cancelled } = await relayAgentStream({
        system,
        streamId,
        response,
        limits,
        budget,
        signal,
        ...(events === undefined ? {} : { events }),
      })
      if (cancelled && isCancelled(query)) await this.#notifyCancelled(target, query, streamId)
    } finally {
      this.#finish()
    }
  }

  /**
   * Sends `stream_cancel` to the agent, once, as part of the stream's own place among the agent's
   * calls (A10).
   */
  async #notifyCancelled(target: AgentTarget, query: AgentQuery, streamId: string): Promise<void> {
    await this.#sendOnce(target, {
      ...query,
      mode: 'accept',
      body: streamCancelled(streamId),
      timeoutMs: CANCEL_TIMEOUT_MS,
    })
  }

  #send(target: AgentTarget, query: AgentQuery, requesterGone?: AbortSignal): Promise<CallResult> {
    const { wire } = query
    if (wire === undefined) return this.#sendOnce(target, query, requesterGone)
    return speak(query, wire, this.wire, (one) => this.#sendOnce(target, one, requesterGone))
  }

  #sendOnce(target: AgentTarget, query: AgentQuery, requesterGone?: AbortSignal): Promise<CallResult> {
    const { permittedNow } = target
    if (permittedNow === undefined) return this.#exchange(target, query, requesterGone)
    return permittedNow().then((permitted) => {
      if (!permitted) return { reply: ADDRESS_REFUSED }
      if (this.#node.stopped.aborted) return { reply: SHUTTING_DOWN }
      return this.#exchange(target, query, requesterGone)
    })
  }

  #exchange(target: AgentTarget, query: AgentQuery, requesterGone?: AbortSignal): Promise<CallResult> {
    const { calls, maxResponseBytes } = this.#node
    return new Promise((resolve) => {
      const call = new AgentCall(query, maxResponseBytes, (result) => {
        calls.delete(call)
        requesterGone?.removeEventListener('abort', onGone)
        resolve(result)
      })
      const onGone = (): void => call.abort(unreachable('the caller disconnected'))
      calls.add(call)
      if (requesterGone?.aborted === true) onGone()
      else requesterGone?.addEventListener('abort', onGone, { once: true })
      call.send(target)
    })
  }

  #begin(): void {
    this.#inFlight++
    this.#node.inFlight.begin()
  }

  #finish(): void {
    this.#node.inFlight.finish()
    if (--this.#inFlight === 0) this.#idle()
  }
}

/**
 * Returns true if the end of a stream's client cancels the agent's work. A client that speaks an official version of
 * A2A may come back for the task, and has a method to cancel it.
 */
function isCancelled({ wire }: AgentQuery): boolean {
  return wire?.answer !== 'native' && wire?.answer !== 'rest'
}
