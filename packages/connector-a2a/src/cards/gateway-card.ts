import type { JsonObject } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'
import { agentOptions, withoutUnsafeLinks } from '@signalbox/registry'

import { defined, nonEmptyText, nonEmptyTexts, objectsOf, without, withoutEmpty } from './card-members.ts'
import type { CardSecurity } from './security.ts'
import { ownSecurity, securityOfBoth, securityV10, securityWithAgents } from './security.ts'

/**
 * The shapes of a card. `1.0`: the members of A2A 1.0 and no other, because strict clients refuse others.
 * `both`: all members of the agent's card, with those of A2A 0.3 and of A2A 1.0.
 */
export type CardShape = '1.0' | 'both'

/** The place and the rules of the gateway that shows a card. */
export interface CardContext extends InterfacePlace {
  /** `true` if callers must send a bearer token. */
  readonly bearer: boolean
  /** `true` if callers send their own credentials for the agent. */
  readonly callers: boolean
  /** `false` if the gateway serves its own dialect alone. */
  readonly native: boolean
  /** `false` to leave the interface of A2A 0.3 out of the card of A2A 1.0. */
  readonly v03: boolean
  /**
   * `false` if the agent's push notifications are not in the version of A2A that the readers of this shape speak;
   * `gateway` if the gateway sends them.
   */
  readonly push: boolean | 'gateway'
  readonly shape: CardShape
}

/**
 * Members that the gateway writes itself or leaves out: addresses of the agent, its security, which ends at
 * the gateway, and its signatures, which the changes make invalid. In both spellings that SDKs read.
 */
const REPLACED: ReadonlySet<string> = new Set([
  'a2a',
  'additionalInterfaces',
  'additional_interfaces',
  'preferredTransport',
  'preferred_transport',
  'protocolVersion',
  'protocol_version',
  'security',
  'securityRequirements',
  'security_requirements',
  'securitySchemes',
  'security_schemes',
  'signatures',
  'supportedInterfaces',
  'supported_interfaces',
  'supportsAuthenticatedExtendedCard',
  'supports_authenticated_extended_card',
  'url',
])

/**
 * Returns the card of an agent as the gateway shows it: its interfaces, security and capabilities are those
 * of the gateway, and no required member is absent or empty. Never throws for a JSON object: extended cards
 * come from agents unchecked.
 */
export function gatewayCard(original: JsonObject, context: CardContext): JsonObject {
  const safe = withoutUnsafeLinks(original)
  return context.shape === '1.0' ? cardV10(safe, context) : cardOfBoth(safe, context)
}

function cardV10(original: JsonObject, context: CardContext): JsonObject {
  const { base, agentId, native, v03, push } = context
  const place = { base, agentId }
  const basics = basicsOf(original, agentId)
  const { streaming, ...capabilities } = capabilitiesOf(original, push)
  const card = withoutEmpty({
    name: basics.name,
    description: basics.description,
    supportedInterfaces: [
      ...interfacesV10(place, tenantsOf(original), native),
      ...(native && v03 ? [interfaceV03(place, native)] : []),
    ],
    provider: providerOf(original['provider']),
    version: basics.version,
    documentationUrl: nonEmptyText(original['documentationUrl']),
    // The streams of the dialect are not those of A2A 1.0.
    capabilities: { streaming: native && streaming, ...capabilities, ...extensionsOf(original) },
    ...securityV10(securityOf(original, context)),
    defaultInputModes: basics.defaultInputModes,
    defaultOutputModes: basics.defaultOutputModes,
    skills: skillsV10(original['skills'], { id: agentId, ...basics }),
    iconUrl: nonEmptyText(original['iconUrl']),
  })
  return isJsonObject(card) ? card : {}
}

function cardOfBoth(original: JsonObject, context: CardContext): JsonObject {
  const { base, agentId, native, push } = context
  const place = { base, agentId }
  const basics = basicsOf(original, agentId)
  const { extendedAgentCard, ...capabilities } = capabilitiesOf(original, push)
  const declared = isJsonObject(original['capabilities']) ? original['capabilities'] : {}
  const v03 = interfaceV03(place, native)
  return {
    ...without(original, REPLACED),
    ...basics,
    url: v03['url'],
    preferredTransport: v03['protocolBinding'],
    protocolVersion: '0.3.0',
    ...(extendedAgentCard === undefined ? {} : { supportsAuthenticatedExtendedCard: extendedAgentCard }),
    supportedInterfaces: native ? [...interfacesV10(place, tenantsOf(original), native), v03] : [v03],
    capabilities: { ...declared, ...capabilities, ...(extendedAgentCard === undefined ? {} : { extendedAgentCard }) },
    ...securityOfBoth(securityOf(original, context)),
    skills: skillsOfBoth(original['skills'], { id: agentId, ...basics }),
  }
}

function securityOf(original: JsonObject, { bearer, callers }: CardContext): CardSecurity {
  return callers ? securityWithAgents(bearer, original) : ownSecurity(bearer)
}

interface Basics {
  readonly name: string
  readonly description: string
  readonly version: string
  readonly defaultInputModes: readonly string[]
  readonly defaultOutputModes: readonly string[]
}

/** The required members that are plain values, with a value in place of those that the agent leaves out. */
function basicsOf(card: JsonObject, agentId: string): Basics {
  const name = nonEmptyText(card['name']) ?? agentId
  return {
    name,
    description: nonEmptyText(card['description']) ?? name,
    version: nonEmptyText(card['version']) ?? '0.0.0',
    defaultInputModes: nonEmptyTexts(card['defaultInputModes']) ?? ['text/plain'],
    defaultOutputModes: nonEmptyTexts(card['defaultOutputModes']) ?? ['text/plain'],
  }
}

interface Capabilities {
  readonly streaming: boolean
  readonly pushNotifications: boolean
  readonly extendedAgentCard?: boolean
}

/** The capabilities that the gateway passes through, as the agent declares them in either version. */
function capabilitiesOf(card: JsonObject, push: CardContext['push']): Capabilities {
  const capabilities = isJsonObject(card['capabilities']) ? card['capabilities'] : {}
  const extended = capabilities['extendedAgentCard'] ?? card['supportsAuthenticatedExtendedCard']
  return {
    // The gateway itself streams the events of an agent that fetches its requests.
    streaming: capabilities['streaming'] === true || agentOptions(card).pull,
    pushNotifications: push === 'gateway' || (push && capabilities['pushNotifications'] === true),
    ...(typeof extended === 'boolean' ? { extendedAgentCard: extended } : {}),
  }
}

function extensionsOf(card: JsonObject): JsonObject {
  const capabilities = isJsonObject(card['capabilities']) ? card['capabilities'] : {}
  const extensions = objectsOf(capabilities['extensions']).flatMap((extension) => {
    const uri = nonEmptyText(extension['uri'])
    if (uri === undefined) return []
    const { description, required, params } = extension
    return defined({
      uri,
      description: nonEmptyText(description),
      // `false` is the default, which the SDKs remove before they verify a signature.
      required: required === true ? true : undefined,
      params: isJsonObject(params) ? params : undefined,
    })
  })
  return { extensions }
}

/** Both members are required, so that a provider with one of them is left out. */
function providerOf(provider: unknown): JsonObject | undefined {
  if (!isJsonObject(provider)) return undefined
  const organization = nonEmptyText(provider['organization'])
  const url = nonEmptyText(provider['url'])
  return organization === undefined || url === undefined ? undefined : { organization, url }
}

/** The path of the A2A 0.3 interface, below an agent's own path. */
const V03_PATH = '/v0.3'

/** The base URL, and the agent's place below it. */
interface InterfacePlace {
  /** The gateway's URL as clients see it, without a slash at the end. */
  readonly base: string
  readonly agentId: string
}

/** Returns the URL at which the gateway serves an agent. It has no query: clients append to it. */
function agentAddress({ base, agentId }: InterfacePlace): string {
  return `${base}/a2a/${agentId}`
}

/**
 * Returns the interfaces of A2A 1.0 at which the gateway serves an agent, the preferred one first: two for each `tenant`.
 * @param native `false` without official calls: the dialect has no HTTP+JSON binding
 */
function interfacesV10(place: InterfacePlace, tenants: readonly string[], native: boolean): readonly JsonObject[] {
  const url = agentAddress(place)
  const bindings = native ? ['JSONRPC', 'HTTP+JSON'] : ['JSONRPC']
  const all: readonly (string | undefined)[] = tenants.length === 0 ? [undefined] : tenants
  return all.flatMap((tenant) =>
    bindings.map((protocolBinding) =>
      tenant === undefined
        ? { url, protocolBinding, protocolVersion: '1.0' }
        : { url, protocolBinding, tenant, protocolVersion: '1.0' },
    ),
  )
}

/**
 * Returns the interface of A2A 0.3. Requests of A2A 0.3 have no `tenant`.
 * @param native `false` without the path of official calls: the dialect has the method names of A2A 0.3
 */
function interfaceV03(place: InterfacePlace, native: boolean): JsonObject {
  return { url: `${agentAddress(place)}${native ? V03_PATH : ''}`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' }
}

/**
 * Returns each `tenant` of an agent, in the order of its card: those of the interfaces at the agent's registered `url`, or
 * else at the url of the first interface, over JSON-RPC or over HTTP+JSON if there is no other.
 */
export function tenantsOf({ supportedInterfaces, url }: JsonObject): readonly string[] {
  if (!Array.isArray(supportedInterfaces)) return []
  const all = supportedInterfaces.filter((one): one is JsonObject => isJsonObject(one))
  const over = (binding: string): readonly JsonObject[] => all.filter((one) => one['protocolBinding'] === binding)
  const offered = over('JSONRPC').length > 0 ? over('JSONRPC') : over('HTTP+JSON')
  const at = offered.some((one) => one['url'] === url) ? url : offered[0]?.['url']
  const tenants = offered.filter((one) => one['url'] === at).map((one) => one['tenant'])
  return [...new Set(tenants.filter((tenant): tenant is string => typeof tenant === 'string' && tenant !== ''))]
}

/** Members that name credentials of the agent. The gateway does not forward credentials. */
const SECURITY: ReadonlySet<string> = new Set(['security', 'securityRequirements', 'security_requirements'])

/** The agent that a card describes. */
interface Described {
  readonly id: string
  readonly name: string
  readonly description: string
}

/**
 * Returns the skills with the members of A2A 1.0. A client may refuse a card without skills, so an agent
 * that names none has one: itself.
 */
function skillsV10(skills: unknown, { id, name, description }: Described): readonly JsonObject[] {
  const known = objectsOf(skills).map((skill) =>
    defined({
      ...requiredOf(skill),
      examples: nonEmptyTexts(skill['examples']),
      inputModes: nonEmptyTexts(skill['inputModes']),
      outputModes: nonEmptyTexts(skill['outputModes']),
    }),
  )
  return known.length > 0 ? known : [{ id, name, description, tags: ['agent'] }]
}

/** Returns the skills with all their members, but without security of their own. */
function skillsOfBoth(skills: unknown, described: Described): readonly JsonObject[] {
  const known = objectsOf(skills).map((skill) => Object.assign(without(skill, SECURITY), requiredOf(skill)))
  return known.length > 0 ? known : skillsV10(skills, described)
}

/** The members that clients require, with a value in place of those that the agent leaves out. */
function requiredOf(skill: JsonObject): JsonObject {
  const name = nonEmptyText(skill['name']) ?? nonEmptyText(skill['id']) ?? 'skill'
  const id = nonEmptyText(skill['id']) ?? name
  return {
    id,
    name,
    description: nonEmptyText(skill['description']) ?? name,
    tags: nonEmptyTexts(skill['tags']) ?? [id],
  }
}
