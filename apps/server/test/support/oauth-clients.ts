import type { OAuthClientProvider as AiProvider } from '@ai-sdk/mcp'
import { auth as aiAuth, createMCPClient, UnauthorizedError as AiUnauthorized } from '@ai-sdk/mcp'
import type { OAuthClientProvider as FirstProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { UnauthorizedError as FirstUnauthorized } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { onTestFinished } from 'vitest'

const REDIRECT_URI = 'http://127.0.0.1/callback'
const INFO = { name: 'test', version: '1.0.0' }

interface Tokens {
  readonly access_token: string
  readonly refresh_token?: string | undefined
  readonly scope?: string | undefined
}

/** A client's memory, and the URLs that it sends its user to. */
export class OAuthMemory<ClientInformation, Held extends Tokens> {
  readonly redirectUrl = REDIRECT_URI
  readonly clientMetadata = {
    client_name: 'test',
    redirect_uris: [REDIRECT_URI],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'none',
  }
  readonly visits: URL[] = []
  held: Held | undefined
  #client: ClientInformation | undefined
  #verifier = ''

  clientInformation(): ClientInformation | undefined {
    return this.#client
  }

  saveClientInformation(client: ClientInformation): void {
    this.#client = client
  }

  tokens(): Held | undefined {
    return this.held
  }

  saveTokens(tokens: Held): void {
    this.held = tokens
  }

  redirectToAuthorization(url: URL): void {
    this.visits.push(url)
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier
  }

  codeVerifier(): string {
    return this.#verifier
  }
}

/** An answer of the server, as the client sees it. */
export interface SeenAnswer {
  readonly status: number
  readonly challenge: string | null
}

/** An OAuth client of one user. */
export interface OAuthClient {
  /** The URLs that the user was sent to. */
  readonly visits: readonly URL[]
  /** The answers of the server without success, each once. */
  readonly refused: readonly SeenAnswer[]
  readonly scope: string | undefined
  /** Connects with the tokens so far. */
  connect(): Promise<OAuthConnection>
  /** Continues with the URL that the browser was sent to after the login. */
  finish(callback: URL): Promise<void>
  /** Replaces the access token, and keeps the refresh token or drops it. */
  replaceToken(token: string, refresh: boolean): void
  dropRefreshToken(): void
}

export interface OAuthConnection {
  readonly version: string | undefined
  tools(): Promise<number>
  call(name: string, args: Record<string, unknown>): Promise<boolean>
  close(): Promise<void>
}

export interface OAuthClientKind {
  readonly name: string
  /** The revision that it speaks to this server. */
  readonly version: string
  /** `true` if the client asks its user for missing scopes, unless it has a refresh token. */
  readonly stepsUp: boolean
  /** The error with which a call ends when the user has to log in. */
  readonly unauthorized: typeof AiUnauthorized | typeof FirstUnauthorized
  readonly create: (url: URL) => OAuthClient
}

/** Returns a `fetch` that notes with which answers one URL refuses the credentials of requests. */
function noting(url: URL, refused: SeenAnswer[]): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    const asked = input instanceof Request ? input.url : input.toString()
    if (asked === url.href && [401, 403].includes(response.status)) {
      const seen = { status: response.status, challenge: response.headers.get('www-authenticate') }
      // Clients of older revisions send the same request twice: they also try to open a stream.
      if (!refused.some(({ status, challenge }) => status === seen.status && challenge === seen.challenge)) {
        refused.push(seen)
      }
    }
    return response
  }
}

function withToken<Held extends Tokens>(held: Held | undefined, token: string, refresh: boolean): Held {
  if (held === undefined) throw new Error('the client has no token to replace')
  return { ...held, access_token: token, ...(refresh ? {} : { refresh_token: undefined }) }
}

type FirstInformation = Parameters<NonNullable<FirstProvider['saveClientInformation']>>[0]
type AiInformation = Parameters<NonNullable<AiProvider['saveClientInformation']>>[0]

const first: OAuthClientKind = {
  name: '@modelcontextprotocol/sdk 1',
  version: '2025-11-25',
  stepsUp: true,
  unauthorized: FirstUnauthorized,
  create(url) {
    const wallet = new OAuthMemory<FirstInformation, Parameters<FirstProvider['saveTokens']>[0]>()
    const refused: SeenAnswer[] = []
    const newTransport = () => new FirstTransport(url, { authProvider: wallet, fetch: noting(url, refused) })
    let transport = newTransport()
    return {
      visits: wallet.visits,
      refused,
      get scope() {
        return wallet.held?.scope
      },
      async connect() {
        const client = new FirstClient(INFO)
        transport = newTransport()
        onTestFinished(() => client.close())
        await client.connect(transport)
        return {
          version: transport.protocolVersion,
          tools: async () => (await client.listTools()).tools.length,
          call: async (name, args) => (await client.callTool({ name, arguments: args })).isError !== true,
          close: () => client.close(),
        }
      },
      finish: ({ searchParams }) => transport.finishAuth(searchParams.get('code') ?? ''),
      replaceToken(token, refresh) {
        wallet.held = withToken(wallet.held, token, refresh)
      },
      dropRefreshToken() {
        wallet.held = withToken(wallet.held, wallet.held?.access_token ?? '', false)
      },
    }
  },
}

function aiSdk(name: string, version: string, discovery: boolean): OAuthClientKind {
  return {
    name: `@ai-sdk/mcp 2, ${name}`,
    version,
    stepsUp: false,
    unauthorized: AiUnauthorized,
    create(url) {
      const wallet = new OAuthMemory<AiInformation, Parameters<AiProvider['saveTokens']>[0]>()
      const refused: SeenAnswer[] = []
      return {
        visits: wallet.visits,
        refused,
        get scope() {
          return wallet.held?.scope
        },
        async connect() {
          const transport = { type: 'http', url: url.href, authProvider: wallet, fetch: noting(url, refused) } as const
          const client = await createMCPClient({ transport, protocolVersionDiscovery: discovery })
          onTestFinished(() => client.close())
          return {
            version: client.initializeResult.protocolVersion,
            tools: async () => (await client.listTools()).tools.length,
            call: async (tool, args) => (await client.callTool({ name: tool, arguments: args })).isError !== true,
            close: () => client.close(),
          }
        },
        async finish({ searchParams }) {
          const authorizationCode = searchParams.get('code') ?? ''
          const callbackIssuer = searchParams.get('iss')
          await aiAuth(wallet, {
            serverUrl: url,
            authorizationCode,
            ...(callbackIssuer === null ? {} : { callbackIssuer }),
          })
        },
        replaceToken(token, refresh) {
          wallet.held = withToken(wallet.held, token, refresh)
        },
        dropRefreshToken() {
          wallet.held = withToken(wallet.held, wallet.held?.access_token ?? '', false)
        },
      }
    },
  }
}

/** OAuth clients besides `@modelcontextprotocol/client` 2. */
export const OAUTH_CLIENTS: readonly OAuthClientKind[] = [
  first,
  aiSdk('with discovery', '2026-07-28', true),
  aiSdk('without discovery', '2025-11-25', false),
]
