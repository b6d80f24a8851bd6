import type { Buffer } from 'node:buffer'
import type { CompressCallback, ZlibOptions } from 'node:zlib'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'

import type { AgentReply } from '@signalbox/registry'

import { invalidResponse, RESPONSE_TOO_LARGE } from './agent-failures.ts'

type Decoder = (bytes: Uint8Array, options: ZlibOptions, done: CompressCallback) => void

const DECODERS: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  ['deflate', inflate],
  ['br', brotliDecompress],
])

/**
 * Decodes the body of an agent that compresses although the request did not allow it, as some
 * frameworks do. The limit applies to the decoded bytes.
 */
export function decodeContent(
  encoding: string,
  { status, body }: { readonly status: number; readonly body: Buffer },
  maxBytes: number,
  done: (reply: AgentReply) => void,
): void {
  const decoder = DECODERS.get(encoding.trim().toLowerCase())
  if (decoder === undefined) {
    done(invalidResponse(status))
    return
  }
  decoder(body, { maxOutputLength: maxBytes }, (error, decoded) => {
    if (error === null) done({ executed: true, error: '', status, body: decoded })
    else done('code' in error && error.code === 'ERR_BUFFER_TOO_LARGE' ? RESPONSE_TOO_LARGE : invalidResponse(status))
  })
}

/** Returns true if a response needs {@link decodeContent}. */
export function isEncoded(encoding: string | undefined): encoding is string {
  return encoding !== undefined && encoding !== '' && encoding.toLowerCase() !== 'identity'
}
