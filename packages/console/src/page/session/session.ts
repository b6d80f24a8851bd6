import { forgetToken, keepToken, tabStorage, token } from './token.ts'
import type { Client, Tokens } from './token-request.ts'
import { requestToken, TokenRefused } from './token-request.ts'

const KEY = 'signalbox.renewal'

/**
 * The shortest time between two renewals, in ms: neither a provider that does not answer nor a server that refuses
 * every token makes a page ask all the time.
 */
const PAUSE_MS = 5_000

/** The refresh token, and the client that uses it. */
interface Renewal extends Client {
  readonly refreshToken: string
  readonly renewAt?: number | undefined
}

let renewal = storedRenewal()

let pending: Promise<void> | undefined
let notBefore = 0

/** Keeps a token that the operator pasted. */
export function signIn(value: string): void {
  forgetRenewal()
  keepToken(value)
}

/** Keeps the tokens of the identity provider. */
export function signInWith(client: Client, { accessToken, renewAt, refreshToken }: Tokens): void {
  forgetRenewal()
  if (refreshToken !== undefined) {
    const { clientId, resource, tokenEndpoint } = client
    renewal = { clientId, resource, tokenEndpoint, refreshToken, renewAt }
    tabStorage.set(KEY, JSON.stringify(renewal))
  }
  keepToken(accessToken)
}

export function signOut(): void {
  forgetRenewal()
  forgetToken()
}

function storedRenewal(): Renewal | undefined {
  const text = tabStorage.get(KEY)
  return text === undefined ? undefined : JSON.parse(text)
}

function forgetRenewal(): void {
  renewal = undefined
  tabStorage.delete(KEY)
}

/** Returns the token for the next request. Renews it first if it is about to expire. */
export async function currentToken(): Promise<string | undefined> {
  const { renewAt = Infinity } = renewal ?? {}
  if (Date.now() >= renewAt) await renew()
  return token.value
}

/**
 * Returns true if there is another token than the one that the server refused: another request got it, or
 * the identity provider gave it now.
 */
export async function replaceToken(refused: string | undefined): Promise<boolean> {
  if (token.value === refused) await renew()
  return token.value !== undefined && token.value !== refused
}

/** Renews the token with the refresh token, if there is one. Requests share one attempt. */
async function renew(): Promise<void> {
  if (renewal === undefined || Date.now() < notBefore) return pending
  pending ??= requestRenewal(renewal).finally(() => {
    pending = undefined
    notBefore = Date.now() + PAUSE_MS
  })
  return pending
}

async function requestRenewal(used: Renewal): Promise<void> {
  try {
    const tokens = await requestToken(used, { grant_type: 'refresh_token', refresh_token: used.refreshToken })
    // The operator may have signed out, or pasted another token.
    if (renewal === used) signInWith(used, { refreshToken: used.refreshToken, ...tokens })
  } catch (error) {
    // Without an answer, a later request tries again.
    if (error instanceof TokenRefused && renewal === used) forgetRenewal()
  }
}
