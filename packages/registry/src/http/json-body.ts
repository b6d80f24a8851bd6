import type { IncomingMessage } from 'node:http'

import { decodeText } from '@signalbox/broker-core'
import { jsonHeadersProblem, readBody } from '@signalbox/http-kit'

import { cardSizeProblem, invalidCard, MAX_CARD_BYTES } from '../card/validate-card.ts'
import { RegistryError } from '../errors.ts'

/** Room for a card that is printed with blanks and carries what the server sets; a larger one could not be valid. */
const MAX_READ_BYTES = 2 * MAX_CARD_BYTES

/**
 * Reads a body that has to be JSON; never settles when the client goes away first.
 * @throws RegistryError MEDIA_TYPE_UNSUPPORTED, BODY_TOO_LARGE, BODY_INVALID; CARD_INVALID where it is a card that is too large (R1)
 */
export function readJson(request: IncomingMessage, maxBodyBytes: number, what: 'card' | 'call'): Promise<unknown> {
  return new Promise((resolve, reject) => {
    if (jsonHeadersProblem(request.headers) !== undefined) {
      reject(
        new RegistryError('MEDIA_TYPE_UNSUPPORTED', 'Content-Type must be application/json, without Content-Encoding'),
      )
      return
    }
    const declared = Number(request.headers['content-length'] ?? 0)
    readBody(request, Math.min(maxBodyBytes, MAX_READ_BYTES), (tooLarge, body) => {
      try {
        if (tooLarge === undefined) resolve(parse(body))
        else if (what === 'call' || declared > maxBodyBytes || maxBodyBytes <= MAX_READ_BYTES) {
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
    })
  })
}

function parse(body: Uint8Array): unknown {
  const text = decodeText(body)
  if (text === undefined) throw new RegistryError('BODY_INVALID', 'the body is not valid UTF-8; send JSON')
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new RegistryError('BODY_INVALID', 'the body is not valid JSON', [], { cause })
  }
}

/** The `agent_id` of a body such as `{"agent_id": "my-agent"}`. @throws RegistryError BODY_INVALID */
export function agentIdOf(body: unknown): string {
  if (typeof body === 'object' && body !== null && 'agent_id' in body && typeof body.agent_id === 'string') {
    return body.agent_id
  }
  throw new RegistryError(
    'BODY_INVALID',
    'the body must be an object with agent_id, a string, such as {"agent_id": "my-agent"}',
  )
}
