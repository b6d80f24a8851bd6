import { randomUUID } from 'node:crypto'

import { encodeText } from '@signalbox/broker-core'

import { invalidTimeout, milliseconds } from './timeout.ts'

/** A `message/stream` that the gateway makes from the query of `GET /a2a/{agent_id}/stream` (A7). */
export interface StreamRequest {
  readonly body: Uint8Array
  /** The agent's time to begin its answer; undefined where the caller names none. */
  readonly timeoutMs: number | undefined
}

/**
 * Reads `message` (text), `contextId` and `timeout` (seconds); none is required, of a repeated one the first counts, and
 * others are ignored.
 * @throws JsonRpcError -32602 for a timeout that is not a number above 0
 */
export function streamRequest(query: string): StreamRequest {
  const parameters = new URLSearchParams(query)
  const contextId = parameters.get('contextId') ?? undefined
  const timeout = readSeconds(parameters.get('timeout'))
  const params = {
    message: {
      kind: 'message',
      role: 'user',
      messageId: randomUUID(),
      parts: [{ kind: 'text', text: parameters.get('message') ?? '' }],
      contextId,
    },
    contextId,
    configuration: { blocking: true, timeout },
  }
  const request = { jsonrpc: '2.0', id: randomUUID(), method: 'message/stream', params }
  return {
    body: encodeText(JSON.stringify(request)),
    timeoutMs: timeout === undefined ? undefined : milliseconds(timeout),
  }
}

function readSeconds(text: string | null): number | undefined {
  if (text === null) return undefined
  const seconds = text.trim() === '' ? Number.NaN : Number(text)
  if (Number.isFinite(seconds) && seconds > 0) return seconds
  throw invalidTimeout('timeout', JSON.stringify(text))
}
