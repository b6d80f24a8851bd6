import { Buffer } from 'node:buffer'

import { encodeText } from '@signalbox/broker-core'
import { JsonRpcError, parseJsonRpc } from '@signalbox/http-kit'

const METHOD = 'stream_cancel'
const MENTIONED = Buffer.from(METHOD)

/** A `stream_cancel` says little; nothing longer is looked into. */
const MAX_BYTES = 4096
const STREAM_ID = /^[0-9a-f-]{36}$/

/** The stream that a request asks to cancel; undefined for every other request (A11). */
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

/** The notification by which an agent learns that nobody reads its stream any more (A10). */
export function streamCancelled(streamId: string): Uint8Array {
  return encodeText(JSON.stringify({ jsonrpc: '2.0', method: METHOD, params: { stream_id: streamId } }))
}
