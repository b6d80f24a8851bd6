import type { Buffer } from 'node:buffer'

import type { Tracing } from '@signalbox/broker-core'
import type { AgentAuthorization, AgentTarget } from '@signalbox/registry'
import { CredentialsError } from '@signalbox/registry'

import type { AgentQuery } from '../../requests/agent-query.ts'
import type { CallResult } from '../agent-call.ts'
import { AgentCall } from '../agent-call.ts'
import { ADDRESS_REFUSED, AGENT_GONE, NO_CREDENTIALS, SHUTTING_DOWN, unreachable } from '../agent-failures.ts'
import { agentSpan } from '../agent-span.ts'
import type { InstanceCalls } from './instance-calls.ts'
import type { CallUnderWay } from '../kept-requests.ts'
import { ReplyBody } from '../reply-body.ts'

/** One request to an instance. */
export interface Attempt extends Pick<CallUnderWay, 'place' | 'query' | 'held' | 'isolated'> {
  /** Called with each chunk of a response that is a stream. */
  readonly tap?: ((chunk: Buffer) => void) | undefined
}

/** The state of the node that requests to an agent need. */
export interface SendingNode {
  /** Undefined if nothing is traced. */
  readonly tracing?: Tracing | undefined
  /** Adds the agent's credentials to requests. */
  readonly authorization: AgentAuthorization
  /** The largest response of an agent, in bytes (AgentMaxResponseBytes). */
  readonly maxResponseBytes: number
  /** The requests that wait for an answer. */
  readonly calls: Set<AgentCall>
  /** Aborted when the node stops serving. */
  readonly stopped: AbortSignal
  /** Called for a failure that is reported to no client. */
  failed(error: unknown): void
}

/** Sends requests to the instances of one agent, each to the instance at which its call has a place. */
export class InstanceRequests {
  readonly #agentId: string
  readonly #node: SendingNode
  readonly #calls: InstanceCalls

  constructor(agentId: string, node: SendingNode, calls: InstanceCalls) {
    this.#agentId = agentId
    this.#node = node
    this.#calls = calls
  }

  /**
   * Sends a request to an instance, with the agent's credentials. Its address may have to be resolved, and a token of
   * OAuth to be fetched first.
   */
  async send(attempt: Attempt, requesterGone?: AbortSignal): Promise<CallResult> {
    const { authorization, stopped } = this.#node
    const { query, place } = attempt
    const { target } = place
    if (target === undefined) return { reply: AGENT_GONE }
    const { permittedNow } = target
    if (permittedNow !== undefined) {
      if (!(await permittedNow())) return { reply: ADDRESS_REFUSED }
      if (stopped.aborted) return { reply: SHUTTING_DOWN }
    }
    let headers: AgentQuery['headers']
    try {
      const found = authorization.headers(this.#agentId, target.url, query.headers)
      headers = found instanceof Promise ? await found : found
    } catch (error) {
      if (!(error instanceof CredentialsError)) throw error
      this.#node.failed(error)
      return { reply: NO_CREDENTIALS }
    }
    const result = await this.#exchange({ ...attempt, query: { ...query, headers } }, target, requesterGone)
    if (result.reply.status === 401) authorization.refused(this.#agentId, target.url)
    return result
  }

  #exchange(
    { place, query, held, tap, isolated }: Attempt,
    target: AgentTarget,
    requesterGone?: AbortSignal,
  ): Promise<CallResult> {
    const { calls, maxResponseBytes, tracing } = this.#node
    const { instance } = place
    return new Promise((resolve) => {
      const done = (result: CallResult): void => {
        calls.delete(call)
        requesterGone?.removeEventListener('abort', onGone)
        if (result.reply.status !== 0) instance.answered()
        else if (result.reply.failure === 'unreachable' && requesterGone?.aborted !== true) instance.unreached()
        resolve(result)
      }
      const follow = this.#calls.tap(place, query)
      const isolate = isolated?.tap()
      const onChunk = (chunk: Buffer): Promise<unknown> | undefined => {
        follow?.(chunk)
        tap?.(chunk)
        return isolate?.(chunk)
      }
      const reply = new ReplyBody(held, maxResponseBytes)
      const span = query.traced === true ? tracing && agentSpan(tracing, this.#agentId, query, target.url) : undefined
      const call = new AgentCall(query, reply, done, onChunk, span)
      const onGone = (): void => call.abort(unreachable('the caller disconnected'))
      calls.add(call)
      if (requesterGone?.aborted === true) onGone()
      else requesterGone?.addEventListener('abort', onGone, { once: true })
      call.send(target)
    })
  }
}
