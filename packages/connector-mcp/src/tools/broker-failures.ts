import type { BrokerError, BrokerErrorCode, BrokerHandle, ChannelType, PolicyAction } from '@signalbox/broker-core'
import { isBrokerError, POLICY_ACTIONS } from '@signalbox/broker-core'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import type { ResultNote } from './answer-size.ts'
import { failure } from './results.ts'
import type { Tool, ToolOutcome } from './tool.ts'

const NO_SUBSCRIBER_ADVICE =
  'No subscriber received the request, so it is safe to send it again when a subscriber runs. Check the channel name.'

/**
 * The result of each Broker error at this connector. Advice: a result with `isError: true`, whose text is the code,
 * the error and the advice. `argument`: error -32602. `internal`: an internal
 * error, because no tool can cause it.
 */
const FAILURES: Readonly<Record<BrokerErrorCode, { readonly advice: string } | 'argument' | 'internal'>> = {
  ARGUMENT_INVALID: 'argument',
  CHANNEL_INVALID: 'argument',
  MESSAGE_INVALID: 'argument',
  CHANNEL_RESERVED: { advice: 'Use the agent tools to reach agents; their channels are reserved.' },
  FORBIDDEN: { advice: 'Use another channel or tool, or ask the operator for permission.' },
  CHANNEL_NOT_FOUND: {
    advice: 'Call channel_list to see the existing channels, or create this one by sending to it.',
  },
  CHANNEL_LIMIT: {
    advice: 'Use one of the existing channels (channel_list shows them), or ask the operator to delete some.',
  },
  GROUP_LIMIT: { advice: 'Use an existing group, or wait until unused groups expire.' },
  CALLER_LIMIT: { advice: 'If one caller needs more, ask the operator to raise the limit.' },
  SCHEMA_MISMATCH: {
    advice:
      'Call channel_info to see the schema, and send a body that matches it. The tag ce_dataschema selects a version.',
  },
  SETTING_UNSUPPORTED: { advice: 'Inform the operator: this channel accepts no messages until it is corrected.' },
  MESSAGE_TOO_LARGE: {
    advice: 'Send less, split the content into several messages, or send a reference to it.',
  },
  QUEUE_FULL: { advice: 'Receive some of its messages first (queue_receive), or wait and send again.' },
  NO_DEAD_LETTER_QUEUE: {
    advice: 'Call queue_nack without reject to try again later, or queue_ack to remove the message.',
  },
  NO_SUBSCRIBER: { advice: NO_SUBSCRIBER_ADVICE },
  REQUEST_TIMEOUT: {
    advice:
      'A subscriber received the request and may still execute it. Repeat the request only if that is safe, and use a larger timeout_seconds.',
  },
  ENGINE_UNAVAILABLE: {
    advice:
      'The broker cannot do this at the moment: try again in some seconds. If the error persists, inform the operator.',
  },
  CONFLICT: 'internal',
}

/**
 * Returns the outcome for an error of the Broker.
 * @throws JsonRpcError -32602, or the error itself if it is an internal one
 */
export function brokerFailure(tool: string, error: unknown): ToolOutcome {
  if (!isBrokerError(error)) throw error
  const answer = FAILURES[error.code]
  if (answer === 'internal') throw error
  if (answer === 'argument') throw refused(tool, error)
  const missing = missingAction(error)
  const advice = missing === undefined ? answer.advice : 'Ask the user to grant it.'
  const outcome = failure(`${error.code}: ${sentence(error.message)} ${advice}`)
  return missing === undefined ? outcome : { ...outcome, missing }
}

/** Returns the outcome for a caller that may use the tool on no channel; `undefined` if there can be one. */
export function refusalOfTool({ definition, needs }: Tool, broker: BrokerHandle): ToolOutcome | undefined {
  const { action, patterns } = needs
  const [first] = patterns
  if (first === undefined || patterns.some((pattern) => broker.mayPermit(action, pattern))) return undefined
  try {
    broker.authorize(action, first, '*')
  } catch (error) {
    return brokerFailure(definition.name, error)
  }
  return undefined
}

/** Returns the action that only the caller's credentials do not allow. */
export function missingAction(error: unknown): PolicyAction | undefined {
  if (!isBrokerError(error, 'FORBIDDEN') || error.details['reason'] !== 'credentials') return undefined
  return POLICY_ACTIONS.find((action) => action === error.details['action'])
}

function refused(tool: string, { message, details }: BrokerError): JsonRpcError {
  const argument = [details['argument'], details['field']].find((name) => typeof name === 'string') ?? 'channel'
  return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid arguments for ${tool}: ${message}`, {
    data: { problems: [{ argument, allowed: message }] },
  })
}

/**
 * Returns the note of a result without messages if its channel does not exist: a misspelt name looks like an empty
 * channel. `undefined` if the channel exists, or the caller may not list it.
 */
export async function emptyNote(
  { channels }: BrokerHandle,
  type: ChannelType,
  channel: string,
): Promise<ResultNote | undefined> {
  if (!channels.isMissing(type, channel)) return undefined
  return { hint: sentence((await channels.notFound(type, channel)).message) }
}

/** Adds to the failure of a request without a subscriber where the name exists, or a similar one. */
export async function withoutSubscriber(
  error: BrokerError,
  { channels }: BrokerHandle,
  type: ChannelType,
  channel: string,
): Promise<ToolOutcome> {
  const elsewhere = await channels.elsewhere(type, channel)
  const more = elsewhere === undefined ? '' : ` ${sentence(elsewhere)}`
  return failure(`${error.code}: ${sentence(error.message)} ${NO_SUBSCRIBER_ADVICE}${more}`)
}

function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}${/[.!?…]$/.test(message) ? '' : '.'}`
}
