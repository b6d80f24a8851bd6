import type { ResolveHost } from '@signalbox/http-kit'
import { download } from '@signalbox/http-kit'
import { Type } from 'typebox'
import { Check } from 'typebox/schema'

import { isSafeForTokens } from './safe-for-tokens.ts'

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
