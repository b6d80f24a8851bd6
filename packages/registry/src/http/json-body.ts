import { decodeText } from '@signalbox/broker-core'
import { isJsonObject, jsonHeadersProblem, parseJson, readBody } from '@signalbox/http-kit'
import type { BodyBudget, Refusal } from '@signalbox/http-kit'

import { shown } from '../card/card-problems.ts'
import { cardSizeProblem, invalidCard, MAX_CARD_BYTES } from '../card/validate-card.ts'
import type { RegistryErrorCode } from '../errors.ts'
import { RegistryError } from '../errors.ts'
import type { HttpRequest } from '@signalbox/http-kit'
import { INSTANCE_ID_FORM, isInstanceId } from '../instances/agent-instance.ts'
import type { RegistrationName } from '../instances/registration-name.ts'

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

/** The agent, and the registration of it, that a heartbeat or a deregistration means. */
export interface AgentCallBody {
  readonly agentId: string
  readonly name: RegistrationName
}

/**
 * Reads a body such as `{"agent_id": "my-agent", "instance_id": "a"}`; `instance_id` and `url` are optional.
 * @throws RegistryError BODY_INVALID
 */
export function agentCallOf(body: unknown): AgentCallBody {
  if (!isJsonObject(body) || typeof body['agent_id'] !== 'string') {
    throw new RegistryError(
      'BODY_INVALID',
      'the body must be an object with agent_id, a string, such as {"agent_id": "my-agent"}',
    )
  }
  return { agentId: body['agent_id'], name: registrationName('BODY_INVALID', body['instance_id'], body['url']) }
}

/** Returns the name of a registration. @throws RegistryError with the code */
export function registrationName(code: RegistryErrorCode, instanceId: unknown, url: unknown): RegistrationName {
  if (instanceId !== undefined && !isInstanceId(instanceId)) {
    throw new RegistryError(code, `instance_id is ${shown(instanceId)}; it must be ${INSTANCE_ID_FORM}`)
  }
  if (url !== undefined && typeof url !== 'string') {
    throw new RegistryError(code, `url is ${shown(url)}; it must be the url of the registration, a string`)
  }
  return { ...(instanceId === undefined ? {} : { instanceId }), ...(url === undefined ? {} : { url }) }
}
