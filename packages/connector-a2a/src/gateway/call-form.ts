import type { JsonRpcError } from '@signalbox/http-kit'
import type { AgentReply } from '../requests/agent-reply.ts'
import type { AgentRequestOptions } from '../requests/agent-requests.ts'

import type { A2aExchange } from '../a2a-exchange.ts'
import type { FailureEncoder } from '../stream/events.ts'
import { agentAnswer, agentNotFound, queryFailure } from './agent-answer.ts'

/** The differences between the ways in which callers speak to an agent. */
export interface CallForm {
  /** The version of the request, if the serving node needs to know it. */
  readonly wire?: AgentRequestOptions['wire']
  /** Returns the error for an agent that is not registered. */
  notFound(agentId: string): JsonRpcError
  /**
   * Returns the error for a failed Query, or undefined if the error is not one of the broker's.
   */
  queryFailure(agentId: string, error: unknown): JsonRpcError | undefined
  /** Answers with the agent's reply. Call it only for replies that opened no stream. */
  answer(exchange: A2aExchange, agentId: string, id: string | undefined, reply: AgentReply): void
  /** Returns the encoder of the errors that end a stream; undefined for that of the gateway's own events. */
  streamFailures(id: string | undefined): FailureEncoder | undefined
}

/** The gateway's own dialect. The agent gets requests unchanged. */
export const DIALECT: CallForm = {
  notFound: agentNotFound,
  queryFailure: (_agentId, error) => queryFailure(error),
  answer(exchange, agentId, id = 'null', reply) {
    const said = agentAnswer(agentId, reply)
    if ('result' in said) exchange.succeed(id, said.result)
    else exchange.failAsAgent(id, said.error)
  },
  streamFailures: () => undefined,
}

/**
 * The stream that the gateway requests itself, in the gateway's own events. The agent gets the
 * request in the version of A2A that it speaks.
 */
export const OWN_STREAM = { ...DIALECT, wire: { version: '0.3', answer: 'events' } } as const satisfies CallForm
