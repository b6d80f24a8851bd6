import { decodeText } from '@signalbox/broker-core'
import { jsonHeadersProblem, parseJson, readBody } from '@signalbox/http-kit'
import type { BodyBudget, Refusal } from '@signalbox/http-kit'

import { cardSizeProblem, invalidCard, MAX_CARD_BYTES } from '../card/validate-card.ts'
import { RegistryError } from '../errors.ts'
import type { HttpRequest } from '@signalbox/http-kit'

/**
 * Twice the maximum size of a card: formatting and the fields that the server sets need space. A larger body
 * cannot hold a valid card.
 */
const MAX_READ_BYTES = 2 * MAX_CARD_BYTES

/**
 * Reads a JSON body. Never settles if the client disconnects first.
 * @throws RegistryError MEDIA_TYPE_UNSUPPORTED, BODY_TOO_LARGE, BODY_INVALID, TOO_MANY_REQUESTS, and
 * CARD_INVALID for a card that is too large
 */
export function readJsonBody(
  request: HttpRequest,
  budget: BodyBudget | undefined,
  maxBodyBytes: number,
  what: 'card' | 'call',
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    if (jsonHeadersProblem(request.headers) !== undefined) {
      reject(
        new RegistryError('MEDIA_TYPE_UNSUPPORTED', 'Content-Type must be application/json, without Content-Encoding'),
      )
      return
    }
    const declared = Number(request.headers['content-length'] ?? 0)
    const read = (refusal: Refusal | undefined, body: Uint8Array): void => {
      try {
        if (refusal === undefined) resolve(parse(body))
        else if (refusal.reason !== 'body_too_large') {
          reject(new RegistryError('TOO_MANY_REQUESTS', refusal.message, [{ limit: refusal.limit }]))
        } else if (what === 'call' || declared > maxBodyBytes || maxBodyBytes <= MAX_READ_BYTES) {
          const limit = Math.min(maxBodyBytes, what === 'call' ? MAX_READ_BYTES : maxBodyBytes)
          const text = `the body is larger than the limit of ${limit} bytes`
          reject(new RegistryError('BODY_TOO_LARGE', text, [{ limit }]))
        } else {
          const problem = cardSizeProblem(Math.max(declared, MAX_READ_BYTES + 1))
          reject(invalidCard(problem === undefined ? [] : [problem]))
        }
      } catch (error) {
        reject(error)
      }
    }
    readBody(request, Math.min(maxBodyBytes, MAX_READ_BYTES), read, budget)
  })
}

function parse(body: Uint8Array): unknown {
  const text = decodeText(body)
  if (text === undefined) throw new RegistryError('BODY_INVALID', 'the body is not valid UTF-8; send JSON')
  const parsed = parseJson(text)
  if ('value' in parsed) return parsed.value
  throw new RegistryError('BODY_INVALID', `the body is ${parsed.problem}`)
}

/** Returns the `agent_id` of a body such as `{"agent_id": "my-agent"}`. @throws RegistryError BODY_INVALID */
export function agentIdOf(body: unknown): string {
  if (typeof body === 'object' && body !== null && 'agent_id' in body && typeof body.agent_id === 'string') {
    return body.agent_id
  }
  throw new RegistryError(
    'BODY_INVALID',
    'the body must be an object with agent_id, a string, such as {"agent_id": "my-agent"}',
  )
}
