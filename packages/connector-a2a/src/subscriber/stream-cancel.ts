import { Buffer } from 'node:buffer'

import { encodeText } from '@signalbox/broker-core'
import { JsonRpcError, parseJsonRpc } from '@signalbox/http-kit'

const METHOD = 'stream_cancel'
const MENTIONED = Buffer.from(METHOD)

/** The largest body that may be a `stream_cancel`. Larger bodies are not parsed. */
const MAX_BYTES = 4096
const STREAM_ID = /^[0-9a-f-]{36}$/

/** Returns the stream that a request asks to cancel; undefined for every other request. */
export function streamToCancel(body: Uint8Array): string | undefined {
  if (body.byteLength > MAX_BYTES) return undefined
  if (Buffer.from(body.buffer, body.byteOffset, body.byteLength).indexOf(MENTIONED) === -1) return undefined
  try {
    const message = parseJsonRpc(body)
    if (message.kind === 'response' || message.method !== METHOD) return undefined
    const streamId = message.params?.['stream_id']
    return typeof streamId === 'string' && STREAM_ID.test(streamId) ? streamId : undefined
  } catch (error) {
    if (error instanceof JsonRpcError) return undefined
    throw error
  }
}

/**
 * Returns the `stream_cancel` notification, which informs an agent that its stream has no reader
 * any more.
 */
export function streamCancelled(streamId: string): Uint8Array {
  return encodeText(JSON.stringify({ jsonrpc: '2.0', method: METHOD, params: { stream_id: streamId } }))
}
