import { isJsonObject } from '@signalbox/http-kit/internal'
import type { JsonObject } from '@signalbox/http-kit'

import { defined, objectsOf } from './card-members.ts'

/**
 * The scope in the requirement of A2A 1.0. Bearer tokens have no scopes, but the SDKs drop an empty list
 * before they verify a signature, and the specification keeps it.
 */
const SCOPE = 'a2a'

/** The names of the gateway's own schemes. */
const GATEWAY = 'bearer'
const FOR_AGENT = 'agentAuthorization'

/** The members of a scheme that has each type of A2A 0.3, by the member of A2A 1.0 that names the same type. */
const TYPES: Readonly<Record<string, string>> = {
  apiKeySecurityScheme: 'apiKey',
  httpAuthSecurityScheme: 'http',
  oauth2SecurityScheme: 'oauth2',
  openIdConnectSecurityScheme: 'openIdConnect',
  mtlsSecurityScheme: 'mutualTLS',
}

/** The schemes whose credentials are sent in the header Authorization. */
const IN_AUTHORIZATION: ReadonlySet<string> = new Set(['http', 'oauth2', 'openIdConnect'])

/** A scheme in both versions. */
interface Scheme {
  readonly type: string
  readonly v10: JsonObject
  readonly v03: JsonObject
}

/** Alternatives; each names all schemes that a request needs, and their scopes. */
type Requirements = readonly (readonly (readonly [name: string, scopes: readonly string[]])[])[]

/** The schemes of a card, and their alternatives. */
export interface CardSecurity {
  readonly schemes: ReadonlyMap<string, Scheme>
  readonly requirements: Requirements
}

const NO_SECURITY: CardSecurity = { schemes: new Map(), requirements: [] }

/** Returns the gateway's own security: a bearer token, or none. */
export function ownSecurity(bearer: boolean): CardSecurity {
  if (!bearer) return NO_SECURITY
  const http = { scheme: 'bearer' }
  return {
    schemes: new Map([[GATEWAY, schemeOf('http', http)]]),
    requirements: [[[GATEWAY, []]]],
  }
}

/**
 * Returns the gateway's security and that of an agent whose callers send their own credentials. The agent's schemes are
 * kept, because they say how to get credentials. Those for the header Authorization, which ends at the gateway, are
 * required in `X-Agent-Authorization` instead.
 */
export function securityWithAgents(bearer: boolean, card: JsonObject): CardSecurity {
  const own = ownSecurity(bearer)
  const agents = schemesOf(card)
  const renamed = (name: string): string => (bearer && name === GATEWAY ? `agent_${name}` : name)
  const schemes = new Map([...own.schemes, ...[...agents].map(([name, one]) => [renamed(name), one] as const)])
  const inHeader = [...agents].some(([, { type }]) => IN_AUTHORIZATION.has(type))
  if (inHeader) {
    const description = 'The value of the header Authorization for the agent, such as: Bearer {token}'
    const header = { name: 'X-Agent-Authorization', description }
    schemes.set(FOR_AGENT, schemeOf('apiKey', { location: 'header', ...header }, { in: 'header', ...header }))
  }
  const ofGateway = own.requirements.flat()
  const requirements = requirementsOf(card, agents).map((alternative) =>
    ofGateway.concat(
      alternative.map(([name, scopes]) => {
        const type = agents.get(name)?.type
        return type !== undefined && IN_AUTHORIZATION.has(type) ? [FOR_AGENT, []] : [renamed(name), scopes]
      }),
    ),
  )
  return { schemes, requirements: requirements.length === 0 ? own.requirements : requirements }
}

/** Returns security as A2A 1.0 writes it. */
export function securityV10({ schemes, requirements }: CardSecurity): JsonObject {
  if (schemes.size === 0) return {}
  return {
    securitySchemes: Object.fromEntries([...schemes].map(([name, { v10 }]) => [name, v10])),
    securityRequirements: requirements.map((alternative) => ({
      schemes: Object.fromEntries(
        alternative.map(([name, scopes]) => [name, { list: scopes.length === 0 ? [SCOPE] : scopes }]),
      ),
    })),
  }
}

/**
 * Returns security as A2A 0.3 and A2A 1.0 write it. A scheme has the members of both versions: the Go SDK
 * refuses a card in which one of them cannot be read.
 */
export function securityOfBoth(security: CardSecurity): JsonObject {
  const { schemes, requirements } = security
  if (schemes.size === 0) return {}
  return {
    ...securityV10(security),
    securitySchemes: Object.fromEntries([...schemes].map(([name, { v10, v03 }]) => [name, { ...v03, ...v10 }])),
    security: requirements.map((alternative) => Object.fromEntries(alternative)),
  }
}

function schemeOf(type: string, members: JsonObject, membersV03: JsonObject = members): Scheme {
  const [member = type] = Object.entries(TYPES).find(([, other]) => other === type) ?? []
  return { type, v10: { [member]: members }, v03: { type, ...membersV03 } }
}

/** Returns the schemes of a card in either version. Leaves out those of unknown types. */
function schemesOf(card: JsonObject): ReadonlyMap<string, Scheme> {
  const given = card['securitySchemes'] ?? card['security_schemes']
  const schemes = new Map<string, Scheme>()
  for (const [name, scheme] of Object.entries(isJsonObject(given) ? given : {})) {
    if (!isJsonObject(scheme)) continue
    const { type, ...members } = scheme
    const [member, known] = Object.entries(TYPES).find(([one]) => isJsonObject(scheme[one])) ?? []
    const found = member === undefined ? members : scheme[member]
    const kind = known ?? Object.values(TYPES).find((one) => one === type)
    if (kind === undefined || !isJsonObject(found)) continue
    if (kind === 'apiKey') {
      const { in: place, location, ...more } = found
      const at = place ?? location
      schemes.set(name, schemeOf(kind, defined({ location: at, ...more }), defined({ in: at, ...more })))
    } else schemes.set(name, schemeOf(kind, found))
  }
  return schemes
}

/** Returns the alternatives of a card; without any, each scheme is one. */
function requirementsOf(card: JsonObject, schemes: ReadonlyMap<string, Scheme>): Requirements {
  const v10 = objectsOf(card['securityRequirements'] ?? card['security_requirements']).map(
    ({ schemes: named }) => named,
  )
  const given = v10.length > 0 ? v10.filter((one) => isJsonObject(one)) : objectsOf(card['security'])
  const named = given.map((alternative) =>
    Object.entries(alternative)
      .filter(([name]) => schemes.has(name))
      .map(([name, scopes]) => [name, textsIn(isJsonObject(scopes) ? scopes['list'] : scopes)] as const),
  )
  const found = named.filter((alternative) => alternative.length > 0)
  return found.length > 0 ? found : [...schemes.keys()].map((name) => [[name, []]])
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}
