import type { ResolveHost } from '@signalbox/http-kit'
import { download } from '@signalbox/http-kit/internal'
import type { ConsoleOAuth, ConsoleOAuthPort } from '@signalbox/management-api'
import { Type } from 'typebox'
import { Check } from 'typebox/schema'

import type { Config } from '../config/schema.ts'
import { consoleIssuer, isSafeForTokens } from '../config/security.ts'
import type { Logger } from '../logging/logger.ts'

/** The time for which metadata is used, in ms. While the provider fails, the last metadata is used. */
const MAX_AGE_MS = 600_000
/** The time between two attempts while the provider fails, in ms. */
const RETRY_MS = 5_000

/** Returns the identity provider of the console; undefined if operators paste tokens. */
export function consoleOAuth(config: Config, log: Logger, resolve: ResolveHost): ConsoleOAuthPort | undefined {
  return config.console.oauth.clientId === '' ? undefined : new ConsoleProvider(config, log, resolve)
}

/** Reads the metadata of the identity provider when the page is opened, so a start does not depend on it. */
class ConsoleProvider implements ConsoleOAuthPort {
  readonly issuer: string
  readonly #settings: Config['console']['oauth']
  readonly #log: Logger
  readonly #resolve: ResolveHost
  #last: ConsoleOAuth | undefined
  #pending: Promise<void> | undefined
  #notBefore = 0

  constructor(config: Config, log: Logger, resolve: ResolveHost) {
    this.issuer = consoleIssuer(config)
    this.#settings = config.console.oauth
    this.#log = log
    this.#resolve = resolve
  }

  async read(): Promise<ConsoleOAuth | undefined> {
    if (performance.now() >= this.#notBefore) {
      this.#pending ??= this.#refresh().finally(() => (this.#pending = undefined))
    }
    if (this.#last === undefined) await this.#pending
    return this.#last
  }

  async #refresh(): Promise<void> {
    const { clientId, scopes, resource } = this.#settings
    try {
      const endpoints = await readProviderMetadata(this.issuer, this.#resolve)
      this.#last = { issuer: this.issuer, ...endpoints, clientId, scopes, resource }
      this.#notBefore = performance.now() + MAX_AGE_MS
    } catch (error) {
      this.#notBefore = performance.now() + RETRY_MS
      const reason = error instanceof Error ? error.message : String(error)
      this.#log.warn({ issuer: this.issuer, reason }, 'metadata of the identity provider not read')
    }
  }
}

/** The endpoints of an identity provider for the authorization code flow. */
export interface ProviderEndpoints {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
}

const METADATA = Type.Object({
  issuer: Type.String(),
  authorization_endpoint: Type.String(),
  token_endpoint: Type.String(),
  code_challenge_methods_supported: Type.Optional(Type.Array(Type.String())),
})

const TIMEOUT_MS = 5_000
const MAX_BYTES = 262_144

/**
 * Reads the endpoints of an identity provider from its metadata: of OpenID Connect Discovery, else of RFC 8414.
 * @throws Error with the reason, for the log
 */
export async function readProviderMetadata(issuer: string, resolve: ResolveHost): Promise<ProviderEndpoints> {
  const failures: string[] = []
  const document = (url: string): Promise<string> =>
    download(new URL(url), {
      accept: 'application/json',
      maxBytes: MAX_BYTES,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      resolve,
    })
  for (const url of metadataUrls(issuer)) {
    try {
      return endpointsOf(issuer, JSON.parse(await document(url)))
    } catch (error) {
      failures.push(`${url}: ${reasonOf(error)}`)
    }
  }
  throw new Error(failures.join('; '))
}

/** OpenID Connect puts the well-known path after the path of the issuer, RFC 8414 before it. */
function metadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ]
}

function endpointsOf(issuer: string, metadata: unknown): ProviderEndpoints {
  if (!Check(METADATA, metadata)) {
    throw new Error('the metadata has no issuer, authorization_endpoint or token_endpoint')
  }
  if (metadata.issuer !== issuer) {
    throw new Error(`the metadata is of the issuer ${JSON.stringify(metadata.issuer)}; set CONSOLE_OAUTH_ISSUER to it`)
  }
  const { authorization_endpoint: authorizationEndpoint, token_endpoint: tokenEndpoint } = metadata
  for (const endpoint of [authorizationEndpoint, tokenEndpoint]) {
    if (!isSafeForTokens(endpoint)) {
      throw new Error(`the endpoint is ${JSON.stringify(endpoint)}; it must be an https URL, or http on loopback`)
    }
  }
  // Some providers support PKCE and do not say so.
  const { code_challenge_methods_supported: methods = ['S256'] } = metadata
  if (!methods.includes('S256')) throw new Error('the provider does not support PKCE with S256')
  return { authorizationEndpoint, tokenEndpoint }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
