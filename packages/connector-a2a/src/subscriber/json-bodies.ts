import { Buffer } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import { isJsonObject, readJson } from '@signalbox/http-kit/internal'

import type { AgentReply } from '../requests/agent-reply.ts'
import { parseForTranslation } from '../wire/index.ts'

/** Returns the bytes of texts, for {@link mentions}. */
export function bytesOf(texts: readonly string[]): readonly Buffer[] {
  return texts.map((text) => Buffer.from(text))
}

/** Returns true if a body contains one of these texts. This is cheaper than parsing it. */
export function mentions(body: Uint8Array, texts: readonly Buffer[]): boolean {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return texts.some((text) => bytes.includes(text))
}

/** Parses a body with its numbers as they are written; undefined if it is not JSON. */
export function parsedBody(body: Uint8Array): unknown {
  try {
    return parseForTranslation(decodeText(body) ?? '')
  } catch {
    return undefined
  }
}

/** An error has a short text. Larger responses are not parsed. */
const MAX_ERROR_BYTES = 16_384

/** Returns true if an agent answered with a JSON-RPC error that has one of these codes. */
export function isErrorWith(codes: readonly number[], { body, failure }: AgentReply): boolean {
  if (failure !== undefined || body.byteLength > MAX_ERROR_BYTES || !mentions(body, bytesOf(codes.map(String)))) {
    return false
  }
  const response = readJson(decodeText(body) ?? '')?.value
  const error = isJsonObject(response) ? response['error'] : undefined
  return isJsonObject(error) && codes.some((code) => code === error['code'])
}
