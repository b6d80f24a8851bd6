import { encodeText } from '@signalbox/broker-core'
import { JsonRpcError, parseJsonRpc } from '@signalbox/http-kit'

import type { AgentQuery } from '../requests/agent-query.ts'
import { mentions, soughtTexts } from './json-bodies.ts'

/**
 * Returns true if the end of a stream's client cancels the agent's work. A client that speaks an official version of
 * A2A may come back for the task, and has a method to cancel it.
 */
export function isCancelled({ wire }: AgentQuery): boolean {
  return wire?.answer !== 'native' && wire?.answer !== 'rest'
}

const STREAM_CANCEL = 'stream_cancel'
const STREAM_CANCEL_BYTES = soughtTexts([STREAM_CANCEL])

/** The largest body that may be a `stream_cancel`. Larger bodies are not parsed. */
const MAX_CANCEL_BYTES = 4096
const STREAM_ID = /^[0-9a-f-]{36}$/

/** Returns the stream that a request asks to cancel; undefined for every other request. */
export function streamToCancel(body: Uint8Array): string | undefined {
  if (body.byteLength > MAX_CANCEL_BYTES || !mentions(body, STREAM_CANCEL_BYTES)) return undefined
  try {
    const message = parseJsonRpc(body)
    if (message.kind === 'response' || message.method !== STREAM_CANCEL) return undefined
    const streamId = message.params?.['stream_id']
    return typeof streamId === 'string' && STREAM_ID.test(streamId) ? streamId : undefined
  } catch (error) {
    if (error instanceof JsonRpcError) return undefined
    throw error
  }
}

/** Returns the `stream_cancel` notification, which informs an agent that its stream has no reader any more. */
export function streamCancelled(streamId: string): Uint8Array {
  return encodeText(JSON.stringify({ jsonrpc: '2.0', method: STREAM_CANCEL, params: { stream_id: streamId } }))
}
