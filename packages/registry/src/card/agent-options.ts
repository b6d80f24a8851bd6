import type { JsonObject } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'

import { agentUrl } from '../agent-addresses.ts'
import type { CredentialKind } from '../credentials/agent-credentials.ts'
import { CREDENTIALS_FORM, isCredentialKind } from '../credentials/agent-credentials.ts'
import type { CardProblem } from './card-problems.ts'
import { shown } from './card-problems.ts'

/** The version of A2A that an agent speaks; `auto` means that the gateway finds out. */
export type AgentWire = '1.0' | '0.3' | 'auto'

/** The options of a registration, from the member `a2a` of its card. */
export interface AgentOptions {
  /** @default 'auto' */
  readonly wire: AgentWire
  /** Serves a card that clients of A2A 0.3 can read. @default true */
  readonly v03: boolean
  /** The kind of credentials that the agent needs. @default none */
  readonly credentials: CredentialKind | undefined
  /** `probe`: the agent lives while its card can be read. @default 'heartbeat' */
  readonly liveness: AgentLiveness
}

/** The proof that an agent lives. */
export type AgentLiveness = 'heartbeat' | 'probe'

const WIRES: readonly AgentWire[] = ['1.0', '0.3', 'auto']

/**
 * Reads the options of a registered card. An invalid option has its default: earlier versions registered
 * any value.
 */
export function agentOptions(card: { readonly [field: string]: unknown }): AgentOptions {
  const options = isJsonObject(card['a2a']) ? card['a2a'] : {}
  const { wire: version, v03, credentials, liveness } = options
  return {
    wire: WIRES.find((wire) => wire === version) ?? 'auto',
    v03: v03 !== false,
    credentials: isCredentialKind(credentials) ? credentials : undefined,
    liveness: liveness === 'probe' ? liveness : 'heartbeat',
  }
}

/**
 * Returns the problems of a card's options. The schema does not check them, so that cards that were
 * registered earlier stay readable.
 */
export function optionProblems(card: unknown): readonly CardProblem[] {
  if (!isJsonObject(card)) return []
  return [...misplacedCredentials(card), ...problemsOfOptions(card)]
}

/** The registry shows members that it does not know to all callers, so secrets must not be one. */
function misplacedCredentials(card: JsonObject): readonly CardProblem[] {
  if (card['credentials'] === undefined) return []
  return [{ field: 'credentials', given: 'a member of the card itself', allowed: 'in a2a, as a2a.credentials' }]
}

function problemsOfOptions(card: JsonObject): readonly CardProblem[] {
  if (card['a2a'] === undefined) return []
  const options = card['a2a']
  if (!isJsonObject(options)) return [{ field: 'a2a', given: shown(options), allowed: 'an object' }]
  return Object.entries(options).flatMap(([name, value]): readonly CardProblem[] => {
    const field = `a2a.${name}`
    if (name === 'wire') {
      return WIRES.some((wire) => wire === value) ? [] : [{ field, given: shown(value), allowed: '1.0, 0.3 or auto' }]
    }
    if (name === 'v03')
      return typeof value === 'boolean' ? [] : [{ field, given: shown(value), allowed: 'true or false' }]
    if (name === 'credentials') {
      // The value may be a secret.
      return isCredentialKind(value) ? [] : [{ field, given: 'not valid', allowed: CREDENTIALS_FORM }]
    }
    if (name === 'liveness') return livenessProblems(card, value)
    const allowed = 'an object with wire, v03, credentials and liveness alone'
    return [{ field: 'a2a', given: `an object with ${shown(name)}`, allowed }]
  })
}

function livenessProblems(card: JsonObject, value: unknown): readonly CardProblem[] {
  if (value === 'heartbeat') return []
  const field = 'a2a.liveness'
  if (value !== 'probe') return [{ field, given: shown(value), allowed: 'heartbeat or probe' }]
  const { agent_card_url: url, instance_id: instance } = card
  if (typeof url !== 'string' || agentUrl(url) === undefined) {
    const allowed = 'an absolute http:// or https:// URL without credentials, because a2a.liveness is probe'
    return [{ field: 'agent_card_url', given: url === undefined ? undefined : shown(url), allowed }]
  }
  return instance === undefined ? [] : [{ field, given: 'probe', allowed: 'heartbeat for an agent with instances' }]
}

/** The bindings of A2A over which the gateway calls agents, for error texts. */
export const BINDINGS = 'JSON-RPC, or HTTP+JSON of A2A 1.0; gRPC alone is not supported'

const REST_V03 = 'HTTP+JSON of A2A 0.3'

const UNSUPPORTED: ReadonlySet<string> = new Set(['GRPC', REST_V03])

/** An interface of a card, in the form of A2A 1.0. */
interface CardInterface {
  readonly binding: string
  readonly url: unknown
}

/**
 * Returns true for an agent that can only be called over the HTTP+JSON binding of A2A 1.0. A registration with `a2a.wire`
 * says that its url speaks JSON-RPC.
 */
export function isRestOnly(card: JsonObject): boolean {
  if (agentOptions(card).wire !== 'auto') return false
  const bindings = bindingsOf(card)
  return !bindings.has('JSONRPC') && bindings.has('HTTP+JSON')
}

/** Returns the address at which the agent of a card is called: over JSON-RPC, else over HTTP+JSON. */
export function callUrl(card: JsonObject): string | undefined {
  const offered = interfacesOf(card)
  const chosen = ['JSONRPC', 'HTTP+JSON'].map((name) => offered.find(({ binding }) => binding === name))
  const url = chosen.find((one) => one !== undefined)?.url
  return typeof url === 'string' ? url : undefined
}

/** Returns the problem of an agent that the gateway cannot call. A card without interfaces is one of JSON-RPC. */
export function bindingProblems(card: unknown): readonly CardProblem[] {
  const bindings = isJsonObject(card) && agentOptions(card).wire === 'auto' ? [...bindingsOf(card)] : []
  if (bindings.some((binding) => !UNSUPPORTED.has(binding)) || bindings.length === 0) return []
  return [
    {
      field: 'supportedInterfaces',
      given: bindings.join(', '),
      allowed: `interfaces over ${BINDINGS}`,
    },
  ]
}

function bindingsOf(card: JsonObject): ReadonlySet<string> {
  return new Set(interfacesOf(card).map(({ binding }) => binding))
}

/**
 * Returns the interfaces of a card: those of A2A 1.0, else those of A2A 0.3. HTTP+JSON of A2A 0.3 has other paths, which
 * the gateway does not call.
 */
function interfacesOf(card: JsonObject): readonly CardInterface[] {
  const { supportedInterfaces, additionalInterfaces, preferredTransport, protocolVersion, url } = card
  const v10 = objectsIn(supportedInterfaces).map(({ protocolBinding: binding, url: at }) => {
    return { binding: typeof binding === 'string' ? binding : '', url: at }
  })
  if (v10.length > 0) return v10
  if (preferredTransport === undefined && protocolVersion === undefined && url === undefined) return []
  const v03 = objectsIn(additionalInterfaces).flatMap((one) => {
    const { transport } = one
    return typeof transport === 'string' ? [{ binding: transport, url: one['url'] }] : []
  })
  const preferred = typeof preferredTransport === 'string' ? preferredTransport : 'JSONRPC'
  return [{ binding: preferred, url }, ...v03].map((one) =>
    one.binding === 'HTTP+JSON' ? { ...one, binding: REST_V03 } : one,
  )
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((one): one is JsonObject => isJsonObject(one)) : []
}
