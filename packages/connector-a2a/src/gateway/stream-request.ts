import { randomUUID } from 'node:crypto'

import { encodeText } from '@signalbox/broker-core'

import { invalidTimeout, milliseconds } from './timeout.ts'

/**
 * A `message/stream` request that the gateway builds from the query string of `GET
 * /a2a/{agent_id}/stream`.
 */
export interface StreamRequest {
  readonly body: Uint8Array
  /** The time until the agent's headers, in ms; undefined if the caller set none. */
  readonly timeoutMs: number | undefined
}

/**
 * Reads the parameters `message` (text), `contextId` and `timeout` (seconds). All are optional, the
 * first of repeated ones counts, and other parameters are ignored.
 * @throws JsonRpcError -32602 for a timeout that is not a number above 0
 */
export function streamRequest(query: string): StreamRequest {
  const parameters = new URLSearchParams(query)
  const contextId = parameters.get('contextId') ?? undefined
  const timeout = readSeconds(parameters.get('timeout'))
  return {
    body: textRequest({ text: parameters.get('message') ?? '', contextId, timeoutSeconds: timeout }),
    timeoutMs: timeout === undefined ? undefined : milliseconds(timeout),
  }
}

/** A text message for an agent. */
export interface TextMessage {
  readonly text: string
  readonly contextId: string | undefined
  readonly timeoutSeconds: number | undefined
}

/** Returns the body of a `message/stream` request with a text message. */
export function textRequest({ text, contextId, timeoutSeconds: timeout }: TextMessage): Uint8Array {
  const params = {
    message: {
      kind: 'message',
      role: 'user',
      messageId: randomUUID(),
      parts: [{ kind: 'text', text }],
      contextId,
    },
    contextId,
    configuration: { blocking: true, timeout },
  }
  return encodeText(JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method: 'message/stream', params }))
}

function readSeconds(text: string | null): number | undefined {
  if (text === null) return undefined
  const seconds = text.trim() === '' ? Number.NaN : Number(text)
  if (Number.isFinite(seconds) && seconds > 0) return seconds
  throw invalidTimeout('timeout', JSON.stringify(text))
}
