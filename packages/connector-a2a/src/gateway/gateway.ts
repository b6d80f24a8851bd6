import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import type { ConnectionCaller, HttpRequest, JsonRpcNotification } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { allSteps, hopsOf, InFlight, internalError, LARGE_BODY_BYTES } from '@signalbox/http-kit/internal'

import type { A2aExchange } from '../a2a-exchange.ts'
import { AGENTS_OWN } from '../a2a-exchange.ts'
import type { A2aRequestEvent, AgentLookup } from '../options.ts'
import type { AgentReply } from '../requests/agent-reply.ts'
import type { AgentRequestOptions, AgentRequests } from '../requests/agent-requests.ts'
import type { OpenedStream, PipeOptions } from '../stream/caller-stream.ts'
import { openStream } from '../stream/caller-stream.ts'
import { STREAM_FAILURES } from '../stream/failures.ts'
import type { StreamLimits } from '../stream/limits.ts'
import { OpenAgentStreams } from '../stream/open-streams.ts'
import type { PushCalls } from '../push/push-calls.ts'
import type { CallProtocol } from './call-protocol.ts'
import { DIALECT } from './call-protocol.ts'
import type { Call } from './call.ts'
import { forbidden, lenientTimeoutMs } from './call.ts'
import { callerHeaders } from './caller-headers.ts'
import type { LoggedCalls } from './logged-calls.ts'
import type { OperatorCalls } from './operator-calls.ts'
import { operatorCalls } from './operator-calls.ts'

export interface GatewayOptions {
  /** Checks callers against the policy. */
  readonly broker: Broker
  readonly system: BrokerHandle
  readonly registry: AgentLookup
  readonly requests: AgentRequests
  /** The calls whose answers are kept; undefined: no answers are kept. */
  readonly logged: LoggedCalls | undefined
  /** Push notifications that the gateway sends; undefined: it sends none. */
  readonly push: PushCalls | undefined
  readonly streamLimits: StreamLimits
  readonly pipe: Pick<PipeOptions, 'idleMs' | 'keepAliveMs'>
  /** Called for a failure that is reported to no client. */
  readonly failed: (error: unknown, request?: HttpRequest) => void
  /** Called with each finished call of an operator. */
  readonly onFinished: ((event: A2aRequestEvent) => void) | undefined
}

/** The parts of a call that its error depends on. */
type FailedCall = Pick<Call, 'id' | 'protocol'> & { readonly agentId: string }

/** The header of an answer that is the one of an earlier request with the same key, or a part of it. */
const REPLAYED = { 'Idempotency-Replayed': 'true' } as const

/** The most bytes of notifications that wait for a node to accept them. Further ones are dropped. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024

/** Sends requests to the node that serves the agent, and writes the answers. */
export class Gateway {
  readonly #options: GatewayOptions
  readonly #operatorCalls = new InFlight()
  readonly #streams = new OpenAgentStreams()
  #waitingBytes = 0

  /** Calls agents for operators. */
  readonly operatorCalls: OperatorCalls

  constructor(options: GatewayOptions) {
    this.#options = options
    this.operatorCalls = operatorCalls({ ...options, streams: this.#streams, inFlight: this.#operatorCalls })
  }

  /** The streams that are open to clients. */
  get streams(): OpenAgentStreams {
    return this.#streams
  }

  /** Forwards a request and answers it. The call continues when the caller disconnects. */
  async call(exchange: A2aExchange, caller: ConnectionCaller, agentId: string, given: Call): Promise<void> {
    const { timeoutMs, protocol } = given
    try {
      if (!this.#isKnown(agentId)) await this.#find(agentId, protocol)
      exchange.found(agentId, caller)
      const { logged, push, requests } = this.#options
      const own = await push?.answer(agentId, given, caller)
      if (own !== undefined) {
        await this.#answer(exchange, agentId, given, own)
        return
      }
      const taken = await push?.take(agentId, given, caller)
      const call = taken?.call ?? given
      const options = requestOptions(exchange, caller, timeoutMs, protocol)
      const kept = logged?.of(exchange.request.headers, agentId, call, options)
      if (logged === undefined || kept === undefined) {
        await this.#answer(exchange, agentId, call, await requests.request(agentId, call.body, options))
        return
      }
      const { answer, replayed, run } = await logged.send(kept)
      // Before the caller knows of the task.
      await taken?.answered(run, replayed)
      if (replayed) exchange.addHeaders(REPLAYED)
      await this.#answer(exchange, agentId, call, answer)
    } catch (error) {
      this.#fail(exchange, error, { ...given, agentId })
    }
  }

  /** Answers with a reply of an agent. A large one is read in turns with other callers. */
  async #answer(
    exchange: A2aExchange,
    agentId: string,
    { id, protocol }: Pick<Call, 'id' | 'protocol'>,
    reply: AgentReply,
  ): Promise<void> {
    const steps = protocol.answer(exchange, agentId, id, reply)
    if (reply.body.byteLength <= LARGE_BODY_BYTES) allSteps(steps)
    else await exchange.inTurns(steps)
  }

  /** Forwards a notification. The caller gets 202 at once, before the outcome is known. */
  async notify(
    exchange: A2aExchange,
    caller: ConnectionCaller,
    agentId: string,
    body: Uint8Array,
    { params }: JsonRpcNotification,
  ): Promise<void> {
    const options = requestOptions(exchange, caller, lenientTimeoutMs(params), DIALECT)
    exchange.empty(202)
    this.#waitingBytes += body.byteLength
    try {
      if (!this.#isKnown(agentId)) await this.#find(agentId, DIALECT)
      exchange.found(agentId, caller)
      if (this.#waitingBytes > MAX_WAITING_BYTES) throw overloaded()
      const reply = await this.#options.requests.request(agentId, body, { ...options, acceptOnly: true })
      if (reply.executed) exchange.finished('success')
      else await this.#answer(exchange, agentId, { protocol: DIALECT }, reply)
    } catch (error) {
      this.#fail(exchange, error, { agentId, protocol: DIALECT })
    } finally {
      this.#waitingBytes -= body.byteLength
    }
  }

  /**
   * Opens a stream and answers with the agent's events. Resolves when the agent has sent its headers: a shutdown waits
   * for that, and ends the streams that are open. Until then, refusals are JSON-RPC errors. A new policy that forbids the
   * call ends the stream, before or after that point.
   */
  async stream(exchange: A2aExchange, caller: ConnectionCaller, agentId: string, call: Call): Promise<void> {
    const opening = new AbortController()
    let isRevoked = false
    let revoke = (): void => void (isRevoked = true)
    const { hold } = exchange
    // Before the agent is called, so that a refused stream never begins.
    const refused = hold?.toStream()
    if (refused !== undefined) {
      exchange.refuse(refused)
      return
    }
    const unwatch = caller.handle(this.#options.broker).whilePermitted('call', 'agents', agentId, (refusal) => {
      opening.abort(forbidden(refusal))
      revoke()
    })
    hold?.retain()
    const over = (): void => {
      unwatch()
      hold?.release()
    }
    const opened = await this.#opened(exchange, caller, agentId, call, opening)
    if (opened === undefined) {
      over()
      return
    }
    revoke = () => opened.stream.end(STREAM_FAILURES.FORBIDDEN)
    if (isRevoked) revoke()
    void this.#pipe(exchange, caller, agentId, opened)
      .catch((error: unknown) => this.#fail(exchange, error, { ...call, agentId }))
      .finally(over)
  }

  /** Opens the agent's stream; undefined when the caller was answered with an error instead. Never rejects. */
  async #opened(
    exchange: A2aExchange,
    caller: ConnectionCaller,
    agentId: string,
    call: Call,
    opening: AbortController,
  ): Promise<OpenedStream | undefined> {
    try {
      if (!this.#isKnown(agentId)) await this.#find(agentId, call.protocol)
      exchange.found(agentId, caller)
      const opened = await this.#open(exchange, caller, agentId, call, opening)
      if ('stream' in opened) return opened
      await this.#answer(exchange, agentId, call, opened.refused)
    } catch (error) {
      // A client that disconnects while it waits is no error; the agent was notified.
      if (exchange.response.destroyed) exchange.finished('success')
      else this.#fail(exchange, error, { ...call, agentId })
    }
    return undefined
  }

  async #open(
    exchange: A2aExchange,
    caller: ConnectionCaller,
    agentId: string,
    given: Call,
    opening: AbortController,
  ): ReturnType<typeof openStream> {
    const { logged, push, system, requests, streamLimits: limits } = this.#options
    const { id, timeoutMs, protocol } = given
    const { response } = exchange
    const taken = await push?.take(agentId, given, caller)
    const call = taken?.call ?? given
    const { body } = call
    const onClose = (): void => opening.abort()
    if (response.destroyed) opening.abort()
    else response.once('close', onClose)
    try {
      const request = { ...requestOptions(exchange, caller, timeoutMs, protocol), signal: opening.signal }
      const kept = logged?.of(exchange.request.headers, agentId, call, request)
      if (logged !== undefined && kept !== undefined) {
        const { answer, replayed, run } = await logged.open(kept)
        taken?.opened(run, replayed)
        if (replayed) exchange.addHeaders(REPLAYED)
        return answer
      }
      const failures = protocol.streamFailures(id)
      return await openStream({ system, requests, agentId, body, request, limits, failures })
    } finally {
      response.off('close', onClose)
    }
  }

  async #pipe(
    exchange: A2aExchange,
    { identity }: ConnectionCaller,
    agentId: string,
    opened: OpenedStream,
  ): Promise<void> {
    const { stream } = opened
    this.#streams.add(stream, agentId, identity.clientId)
    const firstByteSeconds = exchange.seconds
    try {
      const { outcome, errorCode } = await stream.pipeTo(exchange.response, {
        ...this.#options.pipe,
        headers: { ...exchange.takeHeaders(), ...opened.opened.headers },
        hold: exchange.hold,
        endsAt: identity.expiresAt,
      })
      // A client that disconnects from an open stream is no error.
      if (outcome === 'error') exchange.finished('error', String(errorCode ?? AGENTS_OWN), firstByteSeconds)
      else exchange.finished('success', undefined, firstByteSeconds)
    } finally {
      this.#streams.delete(stream)
    }
  }

  /**
   * Ends the open streams with a terminal event, and the calls whose requests wait in inboxes. Waits up to `graceMs`
   * for the calls of operators to finish.
   */
  async close(graceMs: number): Promise<void> {
    this.#streams.close()
    this.#options.logged?.drain()
    await this.#operatorCalls.idleWithin(graceMs)
  }

  #isKnown(agentId: string): boolean {
    return this.#options.registry.get(agentId) !== undefined
  }

  /** @throws JsonRpcError if no such agent is registered */
  async #find(agentId: string, protocol: CallProtocol): Promise<void> {
    if ((await this.#options.registry.find(agentId)) === undefined) throw protocol.notFound(agentId)
  }

  #fail(exchange: A2aExchange, error: unknown, { agentId, id, protocol }: FailedCall): void {
    const known = error instanceof JsonRpcError ? error : protocol.queryFailure(agentId, error)
    if (known === undefined) this.#options.failed(error, exchange.request)
    exchange.fail(known ?? internalError(error), id)
  }
}

function requestOptions(
  { request, hold, span }: A2aExchange,
  { account, identity: { clientId, roles = [] } }: ConnectionCaller,
  timeoutMs: number | undefined,
  { wire }: CallProtocol,
): AgentRequestOptions {
  const given = callerHeaders(request.headers)
  const headers = span === undefined ? given : { ...given, ...span.headers() }
  const hops = hopsOf(request.headers)
  const caller = { clientId, account, roles }
  return { caller, headers, traced: span !== undefined, hops, hold, timeoutMs, wire }
}

function overloaded(): JsonRpcError {
  return new JsonRpcError(
    JSON_RPC_CODES.INTERNAL_ERROR,
    'too many notifications are waiting for agents; the notification was dropped',
  )
}
