import { randomUUID } from 'node:crypto'

import type { BrokerHandle, Caller } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import type { ReplyBudget } from '@signalbox/broker-core/ports'
import type { HttpResponse } from '@signalbox/http-kit'
import type { InFlight } from '@signalbox/http-kit/internal'
import { allSteps, onOneLine } from '@signalbox/http-kit/internal'
import { JSON_RPC_CODES, JsonRpcError, SseStream } from '@signalbox/http-kit'
import { isAgentId } from '@signalbox/registry'

import { AGENTS_OWN } from '../a2a-exchange.ts'
import type { A2aRequestEvent, AgentLookup } from '../options.ts'
import type { AgentReply } from '../requests/agent-reply.ts'
import type { AgentRequests } from '../requests/agent-requests.ts'
import type { CallerStream, PipeOptions, StreamEnd } from '../stream/caller-stream.ts'
import { openStream } from '../stream/caller-stream.ts'
import { clientEventText } from '../stream/events.ts'
import { STREAM_FAILURES } from '../stream/failures.ts'
import type { StreamLimits } from '../stream/limits.ts'
import type { OpenAgentStreams } from '../stream/open-streams.ts'
import { agentAnswer, OWN_STREAM } from './call-protocol.ts'
import { textRequest } from './call.ts'

/** A call of an agent for an operator: one text message. */
export interface OperatorCall {
  readonly agentId: string
  /** The agent gets its ClientID as that of the caller. */
  readonly caller: Caller
  readonly text: string
  /** The conversation that the message continues. @default a new one */
  readonly contextId?: string | undefined
  /** The time until the agent's headers, in ms. */
  readonly timeoutMs: number
  /** Ends the call when aborted, also after the answer began. A TimeoutError is reported as a time-out. */
  readonly signal: AbortSignal
  /** Counts the bytes of the reply until the answer is written. */
  readonly hold?: ReplyBudget | undefined
}

/** The answer of an agent, waiting for the operator's response. */
export interface OperatorCallAnswer {
  /** The id of the stream. */
  readonly id: string
  /** Answers with the gateway's own events, as GET /a2a/{agent_id}/stream does. Call it once and at once. */
  pipeTo(response: HttpResponse, options: Pick<PipeOptions, 'headers' | 'endsAt' | 'hold'>): Promise<StreamEnd>
}

/** Calls agents for operators, whose role decides instead of the policy. */
export interface OperatorCalls {
  /**
   * Calls an agent with `message/stream`, in the version of A2A that it speaks.
   * @throws JsonRpcError for every outcome without an answer, as the gateway answers it; the reason of the signal
   */
  open(call: OperatorCall): Promise<OperatorCallAnswer>
}

export interface OperatorCallsOptions {
  readonly system: BrokerHandle
  readonly registry: AgentLookup
  readonly requests: AgentRequests
  readonly streamLimits: StreamLimits
  readonly pipe: Pick<PipeOptions, 'idleMs' | 'keepAliveMs'>
  /** The streams that are open to clients of this node. */
  readonly streams: OpenAgentStreams
  readonly inFlight: InFlight
  readonly onFinished: ((event: A2aRequestEvent) => void) | undefined
}

/** Creates the calls of operators. They count as calls and streams of the gateway. */
export function operatorCalls(options: OperatorCallsOptions): OperatorCalls {
  return { open: (call) => open(call, options) }
}

async function open(call: OperatorCall, options: OperatorCallsOptions): Promise<OperatorCallAnswer> {
  const { agentId, caller, contextId, hold, signal, text, timeoutMs } = call
  const { inFlight, registry, requests, streamLimits: limits, system } = options
  const finished = reporter(call, options)
  inFlight.begin()
  try {
    if (!isAgentId(agentId) || (registry.get(agentId) ?? (await registry.find(agentId))) === undefined)
      throw OWN_STREAM.notFound(agentId)
    const body = textRequest({ text, contextId, timeoutSeconds: timeoutMs / 1000 })
    const request = { caller, timeoutMs, signal, hold, wire: OWN_STREAM.wire }
    const opened = await openStream({ system, requests, agentId, body, request, limits })
    return 'stream' in opened
      ? streamed(opened.stream, call, options, finished)
      : whole(agentId, opened.refused, finished)
  } catch (error) {
    const known = error instanceof JsonRpcError ? error : OWN_STREAM.queryFailure(agentId, error)
    if (!signal.aborted) finished('error', String((known ?? { code: JSON_RPC_CODES.INTERNAL_ERROR }).code))
    throw known ?? error
  } finally {
    inFlight.finish()
  }
}

type Finished = (status: A2aRequestEvent['status'], errorCode?: string) => void

/** Reports the end of a call to the hooks. The first byte is counted when the answer began. */
function reporter({ agentId, caller: { clientId } }: OperatorCall, { onFinished }: OperatorCallsOptions): Finished {
  const startedAt = performance.now()
  return (status, errorCode) => {
    const seconds = (performance.now() - startedAt) / 1000
    onFinished?.({ agentId, clientId, method: 'message/stream', status, errorCode, seconds, firstByteSeconds: seconds })
  }
}

function streamed(
  stream: CallerStream,
  { agentId, caller, signal }: OperatorCall,
  { pipe, streams }: OperatorCallsOptions,
  finished: Finished,
): OperatorCallAnswer {
  return {
    id: stream.streamId,
    async pipeTo(response, own) {
      const onAbort = (): void => {
        const timedOut = signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError'
        stream.end(timedOut ? STREAM_FAILURES.TIMED_OUT : STREAM_FAILURES.SHUTTING_DOWN)
      }
      streams.add(stream, agentId, caller.clientId)
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
      try {
        const end = await stream.pipeTo(response, { ...pipe, ...own })
        if (end.outcome === 'error') finished('error', String(end.errorCode ?? AGENTS_OWN))
        else finished('success')
        return end
      } finally {
        signal.removeEventListener('abort', onAbort)
        streams.delete(stream)
      }
    },
  }
}

/**
 * Returns the answer of an agent that does not stream: one last event.
 * @throws JsonRpcError for a refusal
 */
function whole(agentId: string, reply: AgentReply, finished: Finished): OperatorCallAnswer {
  const id = randomUUID()
  const said = allSteps(agentAnswer(agentId, reply))
  const type = 'result' in said ? 'done' : 'error'
  const source = 'result' in said ? said.result : encodeText(said.error)
  // An event is one line.
  const payload = decodeText(allSteps(onOneLine(source))) ?? ''
  return {
    id,
    pipeTo: (response, { headers, hold }) =>
      new Promise((resolve) => {
        const sse = new SseStream(response, {
          ...(headers === undefined ? {} : { headers }),
          ...(hold === undefined ? {} : { hold }),
        })
        response.once('close', () => resolve({ outcome: response.writableFinished ? type : 'disconnected' }))
        sse.writeText(clientEventText(id, type, payload))
        sse.end()
        finished(type === 'done' ? 'success' : 'error', type === 'done' ? undefined : AGENTS_OWN)
      }),
  }
}
