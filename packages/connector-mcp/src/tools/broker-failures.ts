import { isBrokerError } from '@signalbox/broker-core'
import type { BrokerError, BrokerErrorCode } from '@signalbox/broker-core'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import { failure } from './results.ts'
import type { ToolOutcome } from './tool.ts'

/**
 * What each Broker error becomes at this connector: advice makes it a result with `isError: true`, its text being the code, what
 * happened and what to do next (specification, "MCP tool errors"); `argument` makes it -32602, should a check have let it pass;
 * `internal` cannot happen to a tool and stays an internal error.
 */
const FAILURES: Readonly<Record<BrokerErrorCode, { readonly advice: string } | 'argument' | 'internal'>> = {
  ARGUMENT_INVALID: 'argument',
  CHANNEL_INVALID: 'argument',
  MESSAGE_INVALID: 'argument',
  CHANNEL_RESERVED: { advice: 'Agents are reached with the agent tools, not through their channels.' },
  FORBIDDEN: { advice: 'Use another channel or tool, or ask the operator for the right to do this.' },
  CHANNEL_NOT_FOUND: {
    advice: 'Call channel_list to see which channels there are, or send to the channel first: that creates it.',
  },
  CHANNEL_LIMIT: {
    advice: 'Use one of the existing channels (channel_list shows them), or ask the operator to delete some.',
  },
  CALLER_LIMIT: { advice: 'If one caller needs more, ask the operator to raise the limit.' },
  MESSAGE_TOO_LARGE: {
    advice: 'Send less, split it over several messages, or send a reference to where the content is kept.',
  },
  QUEUE_FULL: { advice: 'Receive some of its messages first (queue_receive), or wait and send again.' },
  NO_SUBSCRIBER: {
    advice:
      'Nothing received the request, so it is safe to send it again, once a subscriber runs; check the channel name.',
  },
  REQUEST_TIMEOUT: {
    advice:
      'A subscriber has the request and may still act on it: send it again only if doing it twice does no harm, with a larger timeout_seconds.',
  },
  ENGINE_UNAVAILABLE: {
    advice:
      'The broker cannot do this at the moment: wait some seconds and try again. If it goes on, tell the operator.',
  },
  CONFLICT: 'internal',
}

/** The outcome for an error of the Broker. @throws JsonRpcError -32602, or the error itself when it is an internal one */
export function brokerFailure(tool: string, error: unknown): ToolOutcome {
  if (!isBrokerError(error)) throw error
  const answer = FAILURES[error.code]
  if (answer === 'internal') throw error
  if (answer === 'argument') throw refused(tool, error)
  return failure(`${error.code}: ${sentence(error.message)} ${answer.advice}`)
}

function refused(tool: string, { message, details }: BrokerError): JsonRpcError {
  const argument = [details['argument'], details['field']].find((name) => typeof name === 'string') ?? 'channel'
  return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid arguments for ${tool}: ${message}`, {
    data: { problems: [{ argument, allowed: message }] },
  })
}

function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}${/[.!?…]$/.test(message) ? '' : '.'}`
}
