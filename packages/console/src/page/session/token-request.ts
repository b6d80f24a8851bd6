/** The identity provider, and this page as its client. */
export interface Client {
  readonly tokenEndpoint: string
  readonly clientId: string
  /** The resource of the token (RFC 8707); empty for none. */
  readonly resource: string
}

/** The answer of the identity provider. */
export interface Tokens {
  readonly accessToken: string
  /** The time at which to renew the token, in ms since the epoch; undefined if the provider does not say its life. */
  readonly renewAt?: number | undefined
  readonly refreshToken?: string | undefined
}

/** The provider answered that it gives no token. Without an answer, requests fail with another error. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused'
}

/** The time before the expiry of a token at which it is renewed, in seconds; a quarter of a short life. */
const RENEW_BEFORE_SECONDS = 30

/** The time in which the provider must answer, in ms. */
const TIMEOUT_MS = 15_000

interface TokenAnswer {
  readonly access_token?: string
  readonly expires_in?: number
  readonly refresh_token?: string
  readonly error?: string
  readonly error_description?: string
}

/**
 * Asks the identity provider for a token.
 * @throws TokenRefused if it gives none
 */
export async function requestToken(
  { tokenEndpoint, clientId, resource }: Client,
  grant: Readonly<Record<string, string>>,
): Promise<Tokens> {
  const body = new URLSearchParams({ ...grant, client_id: clientId, ...(resource === '' ? {} : { resource }) })
  const response = await fetch(tokenEndpoint, {
    method: 'POST',
    body,
    credentials: 'omit',
    cache: 'no-store',
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  const answer: TokenAnswer = await response.json()
  const { access_token: accessToken, expires_in: seconds, refresh_token: refreshToken } = answer
  if (!response.ok || accessToken === undefined) {
    throw new TokenRefused(answer.error_description ?? answer.error ?? `the answer has status ${response.status}`)
  }
  return {
    accessToken,
    renewAt: typeof seconds === 'number' ? Date.now() + lifeOf(seconds) * 1_000 : undefined,
    refreshToken,
  }
}

function lifeOf(seconds: number): number {
  return Math.max(seconds - RENEW_BEFORE_SECONDS, (seconds * 3) / 4)
}
