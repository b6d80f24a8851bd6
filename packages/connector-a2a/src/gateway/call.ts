import type { IncomingHttpHeaders } from 'node:http'

import type { JsonObject, JsonRpcNotification, JsonRpcRequest } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import { nativeForm } from '../native/native-form.ts'
import { preferredWaitMs } from '../native/prefer-wait.ts'
import type { NativeSpeech } from '../native/speech.ts'
import type { CallForm } from './call-form.ts'
import { DIALECT } from './call-form.ts'
import { lenientTimeoutMs, readTimeoutMs } from './timeout.ts'

/** A validated request for an agent. */
export interface Call {
  /** The body that the agent gets, byte for byte. */
  readonly body: Uint8Array
  /** The source text of the request's id; undefined is answered as null. */
  readonly id?: string | undefined
  /** The caller's time-out, in ms; undefined if the caller set none. */
  readonly timeoutMs: number | undefined
  readonly form: CallForm
}

/** Each event of an official stream repeats the id of its request. */
const MAX_STREAM_ID_CHARACTERS = 1_024

/**
 * Reads a request for an agent. A2A has no notifications: an official call without an id is answered with the id null.
 * @throws JsonRpcError -32602 for an invalid time-out of the dialect, -32600 for an id that is too long for a stream
 */
export function readCall(
  headers: IncomingHttpHeaders,
  body: Uint8Array,
  message: JsonRpcRequest | JsonRpcNotification,
  speech: NativeSpeech | undefined,
): Call {
  const { params } = message
  const id = message.kind === 'request' ? message.id : undefined
  if (speech === undefined) return { body, id, timeoutMs: readTimeoutMs(params), form: DIALECT }
  if (speech.streams && id !== undefined && id.length > MAX_STREAM_ID_CHARACTERS) {
    const problem = `id has ${id.length} characters; a request for a stream may have ${MAX_STREAM_ID_CHARACTERS}`
    throw new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, `invalid request: ${problem}`)
  }
  return { body, id, timeoutMs: nativeTimeoutMs(headers, params), form: nativeForm(speech.version) }
}

/**
 * Returns the time-out of an official call, in ms; undefined if the caller set none. A2A has no time-out of requests, so
 * `configuration.timeout` counts only where it is valid.
 */
export function nativeTimeoutMs(headers: IncomingHttpHeaders, params: JsonObject | undefined): number | undefined {
  return preferredWaitMs(headers.prefer) ?? lenientTimeoutMs(params)
}
