import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import type { JWTPayload } from 'jose'
import { SignJWT } from 'jose'
import { Provider } from 'oidc-provider'
import { onTestFinished } from 'vitest'

const SCOPES = ['signalbox:read', 'signalbox:write', 'signalbox:agents', 'signalbox:manage']

/** A real authorization server. Its user is logged in at once and grants what {@link grants} says. */
export interface AuthorizationServer {
  readonly issuer: string
  readonly jwksUrl: string
  /** The scopes that the user grants when asked. */
  grants: readonly string[]
  /** More claims of the user's tokens. */
  claims: Readonly<Record<string, unknown>>
  /** The life of the access tokens from now on, in seconds. */
  tokenSeconds: number
  /** The state with which the next authorization request is answered, in place of its own. */
  wrongState: string | undefined
  /** The authorization requests so far: their scopes, and the resource that the token is for. */
  readonly asked: { readonly scope: string | null; readonly resource: string | null }[]
  /** The refreshed tokens so far. */
  readonly refreshes: () => number
  /** A token by its key that the authorization server itself would not issue. */
  sign(claims: JWTPayload): Promise<string>
}

/** The differences from an authorization server of MCP hosts. */
export interface AuthorizationServerOptions {
  /** Clients that are registered in advance. @default none */
  readonly clients?: readonly object[]
  /** The origins of pages that may exchange a code. @default none */
  readonly pages?: readonly string[]
  /** The life of an access token, in seconds. @default 300 */
  readonly tokenSeconds?: number
  /** `false` gives no refresh token. @default true */
  readonly refresh?: boolean
}

/** Starts an authorization server for one user. It issues JWT access tokens for the resource that a client names. */
export async function startAuthorizationServer(
  user: string,
  { clients = [], pages = [], tokenSeconds = 300, refresh = true }: AuthorizationServerOptions = {},
): Promise<AuthorizationServer> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const http = createServer()
  await once(http.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    http.closeAllConnections()
    http.close()
  })
  const issuer = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  let refreshes = 0
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'as', use: 'sig', alg: 'ES256' }] },
    cookies: { keys: ['a secret of the test'] },
    pkce: { required: () => true },
    // A client may register only for scopes that this list has.
    scopes: ['openid', 'offline_access', ...SCOPES],
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
    findAccount: (_context: unknown, sub: string) => ({ accountId: sub, claims: () => ({ sub }) }),
    issueRefreshToken: () => refresh,
    clients,
    clientBasedCORS: (_context: unknown, origin: string) => pages.includes(origin),
    extraTokenClaims: () => server.claims,
    ttl: { AccessToken: () => server.tokenSeconds, Grant: 300, Interaction: 300, RefreshToken: 300, Session: 300 },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: unknown, resource: string) => ({
          scope: SCOPES.join(' '),
          audience: resource,
          accessTokenFormat: 'jwt',
          accessTokenTTL: server.tokenSeconds,
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  })
  const serve = provider.callback()
  const server: AuthorizationServer = {
    issuer,
    jwksUrl: `${issuer}/jwks`,
    grants: SCOPES,
    claims: {},
    tokenSeconds,
    wrongState: undefined,
    asked: [],
    refreshes: () => refreshes,
    sign: (claims) =>
      new SignJWT({ iss: issuer, sub: user, exp: Math.floor(Date.now() / 1000) + 600, ...claims })
        .setProtectedHeader({ alg: 'ES256', kid: 'as', typ: 'at+jwt' })
        .sign(privateKey),
  }

  /** What the user does: logs in, and grants what they want to. */
  async function interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { prompt, params, session, grantId } = await provider.interactionDetails(request, response)
    if (prompt.name === 'login') {
      await provider.interactionFinished(request, response, { login: { accountId: user } })
      return
    }
    const known = grantId === undefined ? undefined : await provider.Grant.find(grantId)
    const owner = { accountId: session?.accountId ?? user, clientId: params.client_id }
    const grant = known ?? new provider.Grant(owner)
    // This server asks once for its own list of scopes, and once for those of the resource.
    grant.addOIDCScope((prompt.details.missingOIDCScope ?? []).join(' '))
    for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
      for (const scope of scopes) {
        if (server.grants.includes(scope)) grant.addResourceScope(resource, scope)
        else grant.rejectResourceScope(resource, scope)
      }
    }
    await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
  }

  http.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', issuer)
    if (url.pathname === '/auth' && server.wrongState !== undefined) {
      url.searchParams.set('state', server.wrongState)
      server.wrongState = undefined
      response.writeHead(303, { location: url.href }).end()
      return
    }
    if (url.pathname === '/auth') {
      server.asked.push({ scope: url.searchParams.get('scope'), resource: url.searchParams.get('resource') })
    }
    const answered = url.pathname.startsWith('/interaction/') ? interact(request, response) : serve(request, response)
    answered.catch((error: unknown) => response.writeHead(500).end(String(error)))
  })
  http.on('request', (request: IncomingMessage) => {
    if (request.url !== '/token') return
    let body = ''
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString()
      if (body.includes('grant_type=refresh_token')) refreshes++
    })
  })
  return server
}

/**
 * Follows the redirects of an authorization request as a browser does, with cookies, up to the client's redirect URI.
 * @returns the URL that the browser is sent to, which the client listens at
 */
export async function browse(authorizationUrl: URL): Promise<URL> {
  const redirectUri = authorizationUrl.searchParams.get('redirect_uri') ?? ''
  const cookies = new Map<string, string>()
  let url = authorizationUrl
  for (let step = 0; step < 10; step++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) throw new Error(`${response.status} at ${url.href}: ${await response.text()}`)
    await response.text()
    url = new URL(location, url)
    if (url.href.startsWith(redirectUri)) return url
  }
  throw new Error(`the redirects of ${authorizationUrl.href} do not end`)
}
