import { decodeText } from '@signalbox/broker-core'
import { isJsonObject, jsonHeadersProblem, parseJsonInSteps } from '@signalbox/http-kit/internal'
import type { HttpRequest, Refusal, Steps } from '@signalbox/http-kit'

import type { RegistrationName } from '../agent-instances.ts'
import { INSTANCE_ID_FORM, isInstanceId } from '../card/agent-instance.ts'
import { shown } from '../card/card-problems.ts'
import { cardSizeProblem, invalidCard, MAX_CARD_BYTES } from '../card/validate-card.ts'
import type { RegistryErrorCode } from '../errors.ts'
import { RegistryError } from '../errors.ts'

/**
 * Twice the maximum size of a card: formatting and the fields that the server sets need space. A larger body
 * cannot hold a valid card.
 */
const MAX_READ_BYTES = 2 * MAX_CARD_BYTES

/** The content of a body: the card of an agent, a call on one, or a call on its inbox, which can have large events. */
export type BodyContent = 'card' | 'call' | 'inbox'

/**
 * Returns the most bytes that the body of a request may have.
 * @throws RegistryError MEDIA_TYPE_UNSUPPORTED
 */
export function bodyLimit({ headers }: HttpRequest, content: BodyContent, maxBodyBytes: number): number {
  if (jsonHeadersProblem(headers) !== undefined) {
    throw new RegistryError('MEDIA_TYPE_UNSUPPORTED', 'Content-Type must be application/json, without Content-Encoding')
  }
  return content === 'inbox' ? maxBodyBytes : Math.min(maxBodyBytes, MAX_READ_BYTES)
}

/** Returns the error for a refused body: BODY_TOO_LARGE, TOO_MANY_REQUESTS, or CARD_INVALID for a card that is too large. */
export function bodyRefused(
  refusal: Refusal,
  content: BodyContent,
  { headers }: HttpRequest,
  maxBodyBytes: number,
): RegistryError {
  if (refusal.reason !== 'body_too_large') {
    return new RegistryError('TOO_MANY_REQUESTS', refusal.message, [{ limit: refusal.limit }])
  }
  const declared = Number(headers['content-length'] ?? 0)
  if (content !== 'card' || declared > maxBodyBytes || maxBodyBytes <= MAX_READ_BYTES) {
    const limit = Math.min(maxBodyBytes, content === 'call' ? MAX_READ_BYTES : maxBodyBytes)
    const text = `the body is larger than the limit of ${limit} bytes`
    return new RegistryError('BODY_TOO_LARGE', text, [{ limit }])
  }
  const problem = cardSizeProblem(Math.max(declared, MAX_READ_BYTES + 1))
  return invalidCard(problem === undefined ? [] : [problem])
}

/** Parses a JSON body, a piece of work at a time. @throws RegistryError BODY_INVALID */
export function* parseBody(body: Uint8Array): Steps<unknown> {
  const text = decodeText(body)
  if (text === undefined) throw new RegistryError('BODY_INVALID', 'the body is not valid UTF-8; send JSON')
  const parsed = yield* parseJsonInSteps(text)
  if ('value' in parsed) return parsed.value
  throw new RegistryError('BODY_INVALID', `the body is ${parsed.problem}`)
}

/** The agent, and the registration of it, that a heartbeat or a deregistration means. */
interface AgentCallBody {
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
  return { instanceId, url }
}
