import type { OutgoingHttpHeaders } from 'node:http'

import type { HttpRequest, HttpResponse, JsonObject } from '@signalbox/http-kit'
import type { BaseUrl, PublicDocument } from '@signalbox/http-kit/internal'
import { answerDocument, baseUrlOf, etagOf, forEveryOrigin, refuseBody, withVary } from '@signalbox/http-kit/internal'
import type { AgentCard } from '@signalbox/registry'
import { agentOptions } from '@signalbox/registry'

import type { Platform } from '../options.ts'
import { speaks } from '../subscriber/wire/agent-wire.ts'
import type { CardKey, CardKeys } from './card-keys.ts'
import { signCard } from './card-keys.ts'
import { without } from './card-members.ts'
import type { CardContext, CardShape } from './gateway-card.ts'
import { gatewayCard } from './gateway-card.ts'
import { ownSecurity, securityOfBoth, securityV10 } from './security.ts'

/** The end of every path that serves a card without authentication. */
export const CARD_PATH = '/.well-known/agent-card.json'

/** The time that a client may cache a card, in seconds. */
const CARD_MAX_AGE_SECONDS = 60

/** The time that a verifier may cache the key set, in seconds. */
const KEY_SET_MAX_AGE_SECONDS = 300

/** Members that change while the card stays the same. */
const VOLATILE: ReadonlySet<string> = new Set(['last_seen'])

/**
 * Members that only authenticated callers of `/agents` see: the addresses of an agent's instances, and the owner's
 * notes about the registration. `metadata` is no member of a card in A2A.
 */
const NOT_PUBLIC: ReadonlySet<string> = new Set(['instance_id', 'instances', 'metadata'])

interface CardOptions {
  readonly platform: Platform
  /** The server's URL for clients, without a slash at the end; undefined: the host of each request. */
  readonly publicUrl: string | undefined
  /** The keys that sign cards; undefined: none. */
  readonly keys: CardKeys | undefined
  /** `true` if callers must send a bearer token. */
  readonly bearer: boolean
  /** `false` if the gateway serves its own dialect alone. */
  readonly native: boolean
  /** Returns `true` for an agent whose push notifications the gateway sends. @default none */
  readonly pushes?: (card: AgentCard) => boolean
  /** Returns the card that an agent was registered with. */
  readonly registered: (agentId: string) => AgentCard | undefined
}

/** One shape of a card, and the conditions that it was made under. */
interface KeptCard {
  readonly base: string
  readonly kid: string | undefined
  readonly document: PublicDocument
}

/** Serves cards and the key set over HTTP: without authentication, with an ETag for revalidation. */
export class Cards {
  readonly #options: CardOptions
  /** The last document of each shape. Only one, because a caller can name any host. */
  readonly #kept = new WeakMap<object, Map<CardShape, KeptCard>>()

  constructor(options: CardOptions) {
    this.#options = options
  }

  /** Answers with the platform's own card. */
  platform(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
    const { platform, bearer } = this.#options
    const at = this.#base(request)
    const shape = requestedShape(request)
    const document = this.#document(platform, shape, at, () => platformCard(platform, { base: at.base, bearer, shape }))
    answerDocument(request, response, withVary(headers, 'A2A-Version'), document, caching(at))
  }

  /** Answers with an agent's card, or with 404 if there is no card. */
  agent(
    card: AgentCard | undefined,
    request: HttpRequest,
    response: HttpResponse,
    headers: OutgoingHttpHeaders | undefined,
  ): void {
    if (card === undefined) {
      refuseCard(request, response, headers, 'no agent is registered under this id')
      return
    }
    const at = this.#base(request)
    const shape = agentOptions(card).v03 ? requestedShape(request) : '1.0'
    const document = this.#document(card, shape, at, () => {
      return this.#gatewayCard(without(card, NOT_PUBLIC), at, card.agent_id, card, shape)
    })
    const modified = Date.parse(card.registered_at)
    answerDocument(request, response, withVary(headers, 'A2A-Version'), document, {
      ...caching(at),
      ...(Number.isNaN(modified) ? {} : { 'Last-Modified': new Date(modified).toUTCString() }),
    })
  }

  /**
   * Answers a client that looks for a card relative to a base URL without a slash at the end: it has lost
   * the agent's id.
   */
  lostId(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
    const { base } = this.#base(request)
    const message = `this path has no agent_id; the base URL of an agent must end in a slash: ${base}/a2a/{agent_id}/`
    refuseCard(request, response, headers, message)
  }

  /** Answers with the public keys that verify the signatures of cards. Web pages of every origin may read it. */
  keySet(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
    const { keys } = this.#options
    const text = JSON.stringify({ keys: keys?.keys.map(({ jwk }) => jwk) ?? [] })
    answerDocument(
      request,
      response,
      forEveryOrigin(headers),
      { text, etag: etagOf(text) },
      {
        'Cache-Control': `public, max-age=${KEY_SET_MAX_AGE_SECONDS}`,
      },
    )
  }

  /**
   * Returns the gateway's form of an extended card that an agent sent, signed where the public card is.
   * @param shape `1.0` for a result of A2A 1.0, `both` for one of A2A 0.3
   */
  extended(original: JsonObject, agentId: string, shape: CardShape, request: HttpRequest): JsonObject {
    const at = this.#base(request)
    const card = this.#gatewayCard(original, at, agentId, this.#options.registered(agentId), shape)
    const key = this.#key(shape, at)
    return key === undefined ? card : signCard(card, key, at.base)
  }

  #base(request: HttpRequest): BaseUrl {
    return baseUrlOf(request, this.#options.publicUrl)
  }

  #gatewayCard(
    original: JsonObject,
    { base }: BaseUrl,
    agentId: string,
    registered: AgentCard | undefined,
    shape: CardShape,
  ): JsonObject {
    const { bearer, native, pushes } = this.#options
    const { v03, credentials } = agentOptions(registered ?? {})
    // An agent that sends notifications itself does so in its own version. Clients of 0.3 read the shape of both.
    const isOwn = registered === undefined || !native || speaks(registered, shape === '1.0' ? '1.0' : '0.3')
    const push = registered !== undefined && pushes?.(registered) === true ? 'gateway' : isOwn
    const callers = credentials === 'caller'
    return gatewayCard(original, { base, agentId, bearer, callers, native, v03, push, shape })
  }

  /**
   * Returns the key that signs cards of this shape. Only a card of one version has a canonical form, and
   * only the operator decides for which host the gateway signs.
   */
  #key(shape: CardShape, { configured }: BaseUrl): CardKey | undefined {
    return configured && shape === '1.0' ? this.#options.keys?.keys[0] : undefined
  }

  #document(owner: object, shape: CardShape, at: BaseUrl, create: () => JsonObject): PublicDocument {
    let kept = this.#kept.get(owner)
    if (kept === undefined) this.#kept.set(owner, (kept = new Map()))
    const key = this.#key(shape, at)
    const last = kept.get(shape)
    if (last !== undefined && last.base === at.base && last.kid === key?.kid) return last.document
    const card = create()
    const text = JSON.stringify(key === undefined ? card : signCard(card, key, at.base))
    // A heartbeat changes last_seen, and each signature has a random part: neither is a new card.
    const content = JSON.stringify(without(card, VOLATILE))
    const document = { text, etag: etagOf(content + (key?.kid ?? '')) }
    kept.set(shape, { base: at.base, kid: key?.kid, document })
    return document
  }
}

/** A card that shows the host of one request is for this client alone. */
function caching({ configured }: BaseUrl): OutgoingHttpHeaders {
  return { 'Cache-Control': `${configured ? 'public' : 'private'}, max-age=${CARD_MAX_AGE_SECONDS}` }
}

function refuseCard(
  request: HttpRequest,
  response: HttpResponse,
  headers: OutgoingHttpHeaders | undefined,
  message: string,
): void {
  const text = JSON.stringify({ error: 'AGENT_NOT_FOUND', message, details: [] })
  refuseBody(request, response, 404, { ...headers, 'Content-Type': 'application/json' }, text)
}

const V1 = /^1(?:\.[0-9]{1,9}){0,2}$/

/**
 * Returns the shape that a client asks for with `A2A-Version`, a header or a query parameter. Clients of
 * A2A 0.3 send none.
 */
function requestedShape({ headers, url = '' }: HttpRequest): CardShape {
  const header = headers['a2a-version']
  const version = typeof header === 'string' && header !== '' ? header : queryVersion(url)
  return V1.test(version.trim()) ? '1.0' : 'both'
}

function queryVersion(url: string): string {
  const mark = url.indexOf('?')
  return mark === -1 ? '' : (new URLSearchParams(url.slice(mark + 1)).get('A2A-Version') ?? '')
}

/**
 * Returns the platform's own card. It names no agents, because it is public and the list of agents is not.
 * Its address answers every request with an error that says how agents are addressed.
 */
function platformCard(
  { name, description, version }: Platform,
  { base, bearer, shape }: Pick<CardContext, 'base' | 'bearer' | 'shape'>,
): JsonObject {
  const url = `${base}/a2a`
  const card = {
    name,
    description,
    version,
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: [
      {
        id: 'agents',
        name: 'Registered agents',
        description: `Forwards requests to registered agents. GET ${base}/agents lists them. The base URL of an agent is ${url}/{agent_id}/; its card is at ${url}/{agent_id}/.well-known/agent-card.json.`,
        tags: ['agents', 'gateway', 'registry'],
      },
    ],
  }
  if (shape === '1.0') return { ...card, ...securityV10(ownSecurity(bearer)) }
  const v03 = { url, preferredTransport: 'JSONRPC', protocolVersion: '0.3.0' }
  return { ...card, protocolVersions: ['1.0'], ...v03, ...securityOfBoth(ownSecurity(bearer)) }
}
