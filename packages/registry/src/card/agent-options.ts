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
  /** Sends and streams are logged. True for every agent with an inbox. @default false */
  readonly durable: boolean
  /** `queue`: requests wait in the inbox while the agent cannot be reached. @default 'refuse' */
  readonly offline: AgentOffline
  /** The agent has no url, and leases its requests from its inbox. @default false */
  readonly pull: boolean
  /** The bounds of the inbox. */
  readonly queue: AgentQueue
}

/** The proof that an agent lives. */
export type AgentLiveness = 'heartbeat' | 'probe'

/** The handling of requests while the agent cannot be reached. */
export type AgentOffline = 'refuse' | 'queue'

/** The bounds of an agent's inbox. */
export interface AgentQueue {
  /** The time for which a request waits, in seconds. @default 604800 */
  readonly ttlSeconds: number
  /** The maximum number of requests. @default 1000 */
  readonly maxMessages: number
  /** The maximum number of requests of one caller. @default 100 */
  readonly maxPerCaller: number
  /** The maximum number of deliveries of one request. @default 5 */
  readonly maxAttempts: number
}

/**
 * The url with which the card of a pull agent is stored: nodes of older versions read only cards with a url. No caller
 * sees it. The name never resolves (RFC 2606).
 */
export const INBOX_URL = 'http://inbox.invalid/'

const WIRES: readonly AgentWire[] = ['1.0', '0.3', 'auto']
const OFFLINE: readonly AgentOffline[] = ['refuse', 'queue']

/** A bound of an inbox: its default and its maximum; the minimum is 1. */
interface QueueBound {
  readonly byDefault: number
  readonly most: number
}

const QUEUE_BOUNDS = {
  ttl_seconds: { byDefault: 604_800, most: 31_536_000 },
  max_messages: { byDefault: 1_000, most: 100_000 },
  max_per_caller: { byDefault: 100, most: 100_000 },
  max_attempts: { byDefault: 5, most: 100 },
} as const satisfies Readonly<Record<string, QueueBound>>

const DEFAULT_QUEUE = queueOf({})
const DEFAULTS = optionsOf({}, false)

/**
 * Reads the options of a registered card. An invalid option has its default: earlier versions registered
 * any value. Called once for each request to an agent.
 */
export function agentOptions(card: { readonly [field: string]: unknown }): AgentOptions {
  const { a2a } = card
  return isJsonObject(a2a) ? optionsOf(a2a, isPull(card)) : DEFAULTS
}

function optionsOf(options: JsonObject, pull: boolean): AgentOptions {
  const { wire: version, v03, credentials, liveness, durable, offline: given, queue } = options
  const offline = given === 'queue' && !pull ? given : 'refuse'
  return {
    wire: WIRES.find((wire) => wire === version) ?? 'auto',
    v03: v03 !== false,
    credentials: isCredentialKind(credentials) ? credentials : undefined,
    liveness: liveness === 'probe' ? liveness : 'heartbeat',
    durable: durable === true || pull || offline === 'queue',
    offline,
    pull,
    queue: isJsonObject(queue) ? queueOf(queue) : DEFAULT_QUEUE,
  }
}

function queueOf(queue: JsonObject): AgentQueue {
  return {
    ttlSeconds: boundOf(queue['ttl_seconds'], QUEUE_BOUNDS.ttl_seconds),
    maxMessages: boundOf(queue['max_messages'], QUEUE_BOUNDS.max_messages),
    maxPerCaller: boundOf(queue['max_per_caller'], QUEUE_BOUNDS.max_per_caller),
    maxAttempts: boundOf(queue['max_attempts'], QUEUE_BOUNDS.max_attempts),
  }
}

function boundOf(value: unknown, bound: QueueBound): number {
  return isWithin(value, bound) ? value : bound.byDefault
}

function isWithin(value: unknown, { most }: QueueBound): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= most
}

/**
 * Returns true for the card of a pull agent, as submitted, stored or shown. Returns false if the card has another url
 * than {@link INBOX_URL}: earlier versions registered any options.
 */
export function isPull({ a2a, url }: { readonly [field: string]: unknown }): boolean {
  return isJsonObject(a2a) && a2a['pull'] === true && (url === undefined || url === INBOX_URL)
}

/** Returns true for an agent with an inbox: it is parked when it expires, and its requests wait. */
export function isParkable(card: { readonly [field: string]: unknown }): boolean {
  const { pull, offline } = agentOptions(card)
  return pull || offline === 'queue'
}

/**
 * Returns the problems of a card's options. The schema does not check them, so that cards that were
 * registered earlier stay readable.
 */
export function optionProblems(card: unknown): readonly CardProblem[] {
  if (!isJsonObject(card)) return []
  return [...misplacedCredentials(card), ...problemsOfOptions(card), ...pullProblems(card)]
}

/** Returns the options of a card that a server without a log refuses (CONNECTORSA2_A_LOG). */
export function logProblems(card: unknown): readonly CardProblem[] {
  const options = isJsonObject(card) ? card['a2a'] : undefined
  if (!isJsonObject(options)) return []
  const logged = [
    ['durable', true, 'false'],
    ['offline', 'queue', 'refuse'],
    ['pull', true, 'false'],
  ] as const
  return logged.flatMap(([name, value, other]) => {
    if (options[name] !== value) return []
    const allowed = `${other} or absent, because this server keeps no log (CONNECTORSA2_A_LOG is off)`
    return [{ field: `a2a.${name}`, given: shown(value), allowed }]
  })
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
    if (name === 'v03' || name === 'durable' || name === 'pull')
      return typeof value === 'boolean' ? [] : [{ field, given: shown(value), allowed: 'true or false' }]
    if (name === 'offline') {
      return OFFLINE.some((one) => one === value) ? [] : [{ field, given: shown(value), allowed: 'refuse or queue' }]
    }
    if (name === 'queue') return queueProblems(options, value)
    if (name === 'credentials') {
      // The value may be a secret.
      return isCredentialKind(value) ? [] : [{ field, given: 'not valid', allowed: CREDENTIALS_FORM }]
    }
    if (name === 'liveness') return livenessProblems(card, value)
    const allowed = 'an object with wire, v03, credentials, liveness, durable, offline, pull and queue alone'
    return [{ field: 'a2a', given: `an object with ${shown(name)}`, allowed }]
  })
}

function queueProblems({ pull, offline }: JsonObject, queue: unknown): readonly CardProblem[] {
  const field = 'a2a.queue'
  if (!isJsonObject(queue)) return [{ field, given: shown(queue), allowed: 'an object' }]
  if (pull !== true && offline !== 'queue') {
    const allowed = 'absent unless a2a.pull is true or a2a.offline is queue'
    return [{ field, given: shown(queue), allowed }]
  }
  const bounds: Readonly<Record<string, QueueBound>> = QUEUE_BOUNDS
  return Object.entries(queue).flatMap(([name, value]): readonly CardProblem[] => {
    const bound = Object.hasOwn(bounds, name) ? bounds[name] : undefined
    if (bound === undefined) {
      const allowed = `an object with ${Object.keys(bounds).join(', ')} alone`
      return [{ field, given: `an object with ${shown(name)}`, allowed }]
    }
    if (isWithin(value, bound)) return []
    return [{ field: `${field}.${name}`, given: shown(value), allowed: `a whole number from 1 to ${bound.most}` }]
  })
}

/** Returns the members that a pull agent cannot have, because the server never calls it. */
function pullProblems(card: JsonObject): readonly CardProblem[] {
  const { a2a: options } = card
  if (!isJsonObject(options) || options['pull'] !== true) return []
  const problems: CardProblem[] = []
  for (const field of ['url', 'instance_id', 'agent_card_url']) {
    if (card[field] === undefined) continue
    problems.push({ field, given: 'given', allowed: 'absent, because a2a.pull is true' })
  }
  const { liveness, offline } = options
  if (liveness === 'probe') {
    problems.push({ field: 'a2a.liveness', given: 'probe', allowed: 'heartbeat, because a2a.pull is true' })
  }
  if (offline === 'queue') {
    const allowed = 'refuse or absent, because a2a.pull is true: all requests wait in the inbox'
    problems.push({ field: 'a2a.offline', given: 'queue', allowed })
  }
  return problems
}

function livenessProblems(card: JsonObject, value: unknown): readonly CardProblem[] {
  if (value === 'heartbeat') return []
  const field = 'a2a.liveness'
  if (value !== 'probe') return [{ field, given: shown(value), allowed: 'heartbeat or probe' }]
  if (isJsonObject(card['a2a']) && card['a2a']['pull'] === true) return []
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
    one.binding === 'HTTP+JSON' ? { binding: REST_V03, url: one.url } : one,
  )
}

function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((one): one is JsonObject => isJsonObject(one)) : []
}
