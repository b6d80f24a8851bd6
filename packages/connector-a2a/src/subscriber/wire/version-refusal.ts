import { Buffer } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import { isJsonObject, JSON_RPC_CODES, readJson } from '@signalbox/http-kit'
import type { AgentReply } from '../../requests/agent-reply.ts'

import { A2A_CODES } from '../../native/error-info.ts'

/** The errors of agents that do not speak the version of a request. They have done nothing. */
const CODES: ReadonlySet<unknown> = new Set([JSON_RPC_CODES.METHOD_NOT_FOUND, A2A_CODES.VERSION_NOT_SUPPORTED])
const MENTIONED = [...CODES].map((code) => Buffer.from(String(code)))

/** A refusal has a short text. Larger responses are not parsed. */
const MAX_BYTES = 16_384

/** Returns true if an agent answered that it knows neither the method nor the version. */
export function refusesVersion({ body, failure }: AgentReply): boolean {
  if (failure !== undefined || body.byteLength > MAX_BYTES) return false
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (!MENTIONED.some((code) => bytes.includes(code))) return false
  const response = readJson(decodeText(body) ?? '')?.value
  const error = isJsonObject(response) ? response['error'] : undefined
  return isJsonObject(error) && CODES.has(error['code'])
}
