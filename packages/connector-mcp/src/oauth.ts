import type { OutgoingHttpHeaders } from 'node:http'

import type { PolicyAction } from '@signalbox/broker-core'
import type { HttpRequest, HttpResponse } from '@signalbox/http-kit'
import { AuthenticationError, scopeOf, SCOPES } from '@signalbox/http-kit'
import { refuseBody } from '@signalbox/http-kit/internal'

import type { Tool } from './tools/tool.ts'

/** The endpoint as a protected resource of OAuth 2.1 (MCP, "Authorization"). */
export interface McpOAuthOptions {
  /** The URL of the endpoint for clients, such as `https://broker.example.com/mcp`. Tokens are issued for it. */
  readonly resource: string
  /** The issuer URLs of the authorization servers, where clients get tokens. */
  readonly authorizationServers: readonly string[]
  /** A text before each scope, for authorization servers that require one. @default '' */
  readonly scopePrefix?: string
}

/** The path of the metadata (RFC 9728, section 3). The path of the resource follows. */
export const METADATA_PATH = '/.well-known/oauth-protected-resource'

/** The metadata of a protected resource, and the challenges that lead clients to it. */
export class ProtectedResource {
  /** The metadata as JSON text. */
  readonly metadata: string
  /** The paths that serve the metadata. A proxy may have removed the first part of the resource's path. */
  readonly metadataPaths: ReadonlySet<string>
  readonly #metadataUrl: string
  readonly #prefix: string
  readonly #actions: ReadonlySet<PolicyAction>
  /** All scopes that the tools need, in the form of a challenge. */
  readonly #scope: string

  /**
   * @param path The path of the endpoint on this server
   * @throws RangeError for a resource that is not a URL
   */
  constructor(
    { resource, authorizationServers, scopePrefix = '' }: McpOAuthOptions,
    path: string,
    tools: readonly Tool[],
  ) {
    const url = URL.parse(resource)
    if (url === null) throw new RangeError(`oauth.resource: ${JSON.stringify(resource)}; allowed is an absolute URL`)
    const metadataPath = METADATA_PATH + url.pathname
    this.metadataPaths = new Set([METADATA_PATH, METADATA_PATH + path, metadataPath])
    this.#metadataUrl = url.origin + metadataPath
    this.#prefix = scopePrefix
    this.#actions = new Set(tools.map(({ needs }) => needs.action))
    const scopes = this.#named(this.#actions)
    this.#scope = scopes.join(' ')
    this.metadata = JSON.stringify({
      resource,
      authorization_servers: authorizationServers,
      scopes_supported: scopes,
      bearer_methods_supported: ['header'],
    })
  }

  /**
   * Returns the headers of the answer to a request without a valid token. The error is absent if no token was sent.
   * @param cause The error of the authenticator, which may have a description for the client
   */
  challenge({ headers }: HttpRequest, cause: unknown): OutgoingHttpHeaders {
    if (headers.authorization === undefined) return this.#headers(undefined, this.#scope)
    const description = cause instanceof AuthenticationError ? cause.description : undefined
    return this.#headers('invalid_token', this.#scope, description)
  }

  /** Returns the headers of the answer to a valid token without the scope for an action. */
  insufficient(action: PolicyAction): OutgoingHttpHeaders {
    const scope = this.#named(new Set([action])).join(' ')
    return this.#headers('insufficient_scope', scope, 'the scopes of the token do not allow this call')
  }

  /** Returns the headers of the answer to a valid token without any scope for this endpoint. */
  insufficientForAll(): OutgoingHttpHeaders {
    return this.#headers('insufficient_scope', this.#scope, 'the scopes of the token allow nothing here')
  }

  /** Returns `true` if credentials with these actions are of use here. */
  usefulFor(actions: ReadonlySet<PolicyAction>): boolean {
    return [...actions].some((action) => this.#actions.has(action))
  }

  #headers(error: string | undefined, scope: string, description?: string): OutgoingHttpHeaders {
    const text = description === undefined ? '' : `error_description="${description}", `
    const reason = error === undefined ? '' : `error="${error}", ${text}`
    return { 'WWW-Authenticate': `Bearer ${reason}resource_metadata="${this.#metadataUrl}", scope="${scope}"` }
  }

  /** Returns the scopes of actions as the authorization server names them. */
  #named(actions: ReadonlySet<PolicyAction>): readonly string[] {
    const needed = new Set([...actions].map(scopeOf))
    return SCOPES.filter((scope) => needed.has(scope)).map((scope) => this.#prefix + scope)
  }
}

/** The time that a client may cache the metadata, in seconds. */
const MAX_AGE_SECONDS = 300

/** Headers of every answer: web pages of every origin may read the metadata, which is public. */
const OPEN = { 'Access-Control-Allow-Origin': '*' }

/** Clients send the version of the protocol, so a browser asks first. */
const PREFLIGHT = {
  ...OPEN,
  'Access-Control-Allow-Methods': 'GET, HEAD',
  'Access-Control-Allow-Headers': '*',
  'Access-Control-Max-Age': '86400',
}

/** Answers GET and HEAD with the metadata, OPTIONS with the permission for browsers, and other methods with 405. */
export function answerMetadata(
  request: HttpRequest,
  response: HttpResponse,
  metadata: string,
  moreHeaders: OutgoingHttpHeaders = {},
): void {
  const { method } = request
  const headers = { ...withoutOrigin(moreHeaders), ...OPEN }
  if (method === 'GET' || method === 'HEAD') {
    response.writeHead(200, {
      ...headers,
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(metadata),
      'Cache-Control': `public, max-age=${MAX_AGE_SECONDS}`,
      'X-Content-Type-Options': 'nosniff',
    })
    response.end(method === 'HEAD' ? undefined : metadata)
  } else if (method === 'OPTIONS') {
    response.writeHead(204, { ...headers, ...PREFLIGHT })
    response.end()
  } else refuseBody(request, response, 405, { ...headers, Allow: 'GET, HEAD, OPTIONS' }, '')
}

/** A host's CORS settings may allow fewer origins. */
function withoutOrigin(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  const kept = Object.entries(headers).filter(([name]) => !/^access-control-allow-(?:origin|credentials)$/i.test(name))
  return Object.fromEntries(kept)
}
