import { Buffer } from 'node:buffer'

import type { JsonObject } from '@signalbox/http-kit'
import { compileLater, isJsonObject, MAX_JSON_DEPTH } from '@signalbox/http-kit/internal'

import { agentUrl } from '../agent-addresses.ts'
import { INSTANCE_ID_FORM, isInstanceId } from './agent-instance.ts'
import { RegistryError } from '../errors.ts'
import type { SubmittedCard } from './agent-card.ts'
import { AgentCardSchema, SERVER_SET_FIELDS } from './agent-card.ts'
import { bindingProblems, INBOX_URL, isPull, logProblems, optionProblems } from './agent-options.ts'
import type { CardProblem } from './card-problems.ts'
import { cardProblems, descriptionOf, linkProblems, MAX_PROBLEMS, nameProblems, shown } from './card-problems.ts'

/** The maximum size of a card, in bytes of JSON, without the fields that the server sets. */
export const MAX_CARD_BYTES = 65_536

/**
 * Checks the address of a valid url. Resolves with a description of the allowed urls when it refuses the
 * address.
 */
export type AddressCheck = (url: URL) => Promise<string | undefined>

const card = compileLater(AgentCardSchema)
const DEFAULT_PROTOCOL_VERSIONS = ['1.0']

/**
 * Validates a card that a caller wants to register. Removes the fields that the server sets, adds
 * `protocolVersions` if it is missing, and repairs the form of `securitySchemes`. The card of a pull agent gets
 * {@link INBOX_URL}.
 * @param log `off`: refuses the options that need a log. @default 'auto'
 * @throws RegistryError CARD_INVALID with all problems
 */
export async function validateCard(
  given: unknown,
  checkAddress: AddressCheck,
  log: 'auto' | 'off' = 'auto',
): Promise<SubmittedCard & { readonly protocolVersions: string[] }> {
  const withoutFields = withoutServerFields(given)
  const problem = formProblem(withoutFields)
  if (problem !== undefined) throw invalidCard([problem])
  const pulls = isJsonObject(withoutFields) && withoutFields['url'] === undefined && isPull(withoutFields)
  const submitted = pulls ? { ...withoutFields, url: INBOX_URL } : withoutFields
  const valid = card.Check(submitted)
  const problems = valid ? [] : [...cardProblems(AgentCardSchema, submitted)]
  problems.push(...nameProblems(submitted).slice(0, MAX_PROBLEMS - problems.length))
  problems.push(...optionProblems(withoutFields).slice(0, MAX_PROBLEMS - problems.length))
  if (log === 'off') problems.push(...logProblems(submitted))
  problems.push(...bindingProblems(submitted))
  problems.push(...linkProblems(submitted).slice(0, MAX_PROBLEMS - problems.length))
  problems.push(...instanceProblems(submitted).slice(0, MAX_PROBLEMS - problems.length))
  const urlProblem = pulls ? undefined : await problemOfUrl(submitted, problems, checkAddress)
  if (urlProblem !== undefined) problems.push(urlProblem)
  if (!valid || problems.length > 0) throw invalidCard(problems)
  const { securitySchemes } = submitted
  return {
    protocolVersions: DEFAULT_PROTOCOL_VERSIONS,
    ...submitted,
    ...(securitySchemes === undefined ? {} : { securitySchemes: plainSecuritySchemes(securitySchemes) }),
  }
}

function withoutServerFields(given: unknown): unknown {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given
  const submitted: Record<string, unknown> = { ...given }
  for (const field of SERVER_SET_FIELDS) delete submitted[field]
  // Without an instance_id it is a field that the registry does not know.
  if (submitted['instance_id'] !== undefined) delete submitted['instances']
  return submitted
}

/** Returns the problem that prevents a check of the single fields. */
function formProblem(submitted: unknown): CardProblem | undefined {
  if (isDeeper(submitted, MAX_JSON_DEPTH)) {
    return {
      field: 'card',
      given: `nested deeper than ${MAX_JSON_DEPTH} levels`,
      allowed: `objects and arrays, nested at most ${MAX_JSON_DEPTH} levels deep`,
    }
  }
  let text: string | undefined
  try {
    text = JSON.stringify(submitted)
  } catch {}
  if (text === undefined) return { field: 'card', given: shown(submitted), allowed: 'a value that JSON can represent' }
  return cardSizeProblem(Buffer.byteLength(text))
}

/** Returns the problem of a card of this many bytes of JSON; undefined when it is small enough. */
export function cardSizeProblem(bytes: number): CardProblem | undefined {
  if (bytes <= MAX_CARD_BYTES) return undefined
  return { field: 'card', given: `${bytes} bytes`, allowed: `at most ${MAX_CARD_BYTES} bytes of JSON` }
}

/** Creates the error for an invalid card. */
export function invalidCard(problems: readonly CardProblem[]): RegistryError {
  const texts = problems.map(({ field, given, allowed }) =>
    given === undefined ? `${field} is missing; it must be ${allowed}` : `${field} is ${given}; it must be ${allowed}`,
  )
  const more = problems.length >= MAX_PROBLEMS ? `. The first ${MAX_PROBLEMS} problems are listed` : ''
  return new RegistryError('CARD_INVALID', `invalid agent card: ${texts.join('. ')}${more}`, problems)
}

/** Checked here, because cards that earlier versions registered may have any value. */
function instanceProblems(submitted: unknown): readonly CardProblem[] {
  const value: unknown =
    typeof submitted === 'object' && submitted !== null ? Reflect.get(submitted, 'instance_id') : undefined
  if (value === undefined || isInstanceId(value)) return []
  return [{ field: 'instance_id', given: shown(value), allowed: INSTANCE_ID_FORM }]
}

/** Returns the problem of the url that the schema cannot express: its form, or its address. */
async function problemOfUrl(
  submitted: unknown,
  problems: readonly CardProblem[],
  checkAddress: AddressCheck,
): Promise<CardProblem | undefined> {
  if (problems.some(({ field }) => field === 'url' || field === 'card')) return undefined
  const text: unknown = typeof submitted === 'object' && submitted !== null ? Reflect.get(submitted, 'url') : undefined
  if (typeof text !== 'string') return undefined
  const url = agentUrl(text)
  if (url === undefined) {
    return {
      field: 'url',
      given: shown(withoutCredentials(text)),
      allowed: descriptionOf(AgentCardSchema.properties.url),
    }
  }
  const refusal = await checkAddress(url)
  return refusal === undefined ? undefined : { field: 'url', given: shown(text), allowed: refusal }
}

/** Removes credentials from a url: problems are shown and logged. */
function withoutCredentials(url: string): string {
  return url.replace(/\/\/[^/?#]*@/, '//…@')
}

/** A separate check with a limit, because JSON.stringify throws for a value that is nested too deep. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  return Object.values(value).some((inner) => isDeeper(inner, levels - 1))
}

/** A scheme has flows, and a flow has values: nothing deeper is tagged. */
const MAX_DEPTH = 4

/**
 * Returns security schemes as A2A writes them. An agent that prints the card object of the JavaScript SDK
 * without its serializer sends the SDK's own tagged unions, `{"scheme": {"$case": "x", "value": {}}}` in
 * place of `{"x": {}}`, which no other client can read.
 */
function plainSecuritySchemes(schemes: unknown): unknown {
  return isJsonObject(schemes) ? mapped(schemes, (scheme) => untagged(scheme, MAX_DEPTH)) : schemes
}

function untagged(value: unknown, depth: number): unknown {
  if (!isJsonObject(value) || depth === 0) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const tag = isJsonObject(member) ? member['$case'] : undefined
      if (!isJsonObject(member) || typeof tag !== 'string' || !('value' in member) || tag in value) {
        return [name, untagged(member, depth - 1)]
      }
      return [tag, untagged(member['value'], depth - 1)]
    }),
  )
}

function mapped(object: JsonObject, map: (value: unknown) => unknown): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value)]))
}
