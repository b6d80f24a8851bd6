import { Store } from '../api/store.ts'
import { signInWith } from './session.ts'
import { signedOut, tabStorage, token } from './token.ts'
import type { Client } from './token-request.ts'
import { requestToken, TokenRefused } from './token-request.ts'

/** The identity provider, as the server describes it. */
interface Provider extends Client {
  readonly issuer: string
  readonly authorizationEndpoint: string
  readonly scopes: readonly string[]
}

/** A sign-in that the operator began in this tab. */
interface Attempt extends Client {
  readonly issuer: string
  readonly state: string
  readonly verifier: string
  readonly redirectUri: string
  /** The place in the console that the operator came from. */
  readonly fragment: string
}

const KEY = 'signalbox.sign-in'

/** The reason why the last sign-in failed, for the operator. */
export const signInProblem = new Store<string | undefined>(undefined)

/** `false` in pages without TLS on another machine: browsers offer no cryptography there, which PKCE needs. */
export const canUseProvider = isSecureContext

/** Leaves the page for the identity provider: the authorization code flow of OAuth 2.1 with PKCE. */
export async function beginSignIn(provider: Provider): Promise<void> {
  const { issuer, authorizationEndpoint, tokenEndpoint, clientId, resource, scopes } = provider
  const verifier = randomText()
  const attempt: Attempt = {
    issuer,
    tokenEndpoint,
    clientId,
    resource,
    verifier,
    state: randomText(),
    redirectUri: new URL('.', location.origin + location.pathname).href,
    fragment: location.hash,
  }
  tabStorage.set(KEY, JSON.stringify(attempt))
  const url = new URL(authorizationEndpoint)
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: attempt.redirectUri,
    scope: scopes.join(' '),
    state: attempt.state,
    code_challenge: await challengeOf(verifier),
    code_challenge_method: 'S256',
    resource,
  }
  for (const [name, value] of Object.entries(parameters)) if (value !== '') url.searchParams.set(name, value)
  location.assign(url)
}

/** Takes the answer of the identity provider, if the URL has one, and returns to the place of the operator. */
export async function finishSignIn(): Promise<void> {
  const answer = new URLSearchParams(location.search)
  if (!answer.has('state') || !(answer.has('code') || answer.has('error'))) return
  const attempt = storedAttempt()
  tabStorage.delete(KEY)
  // A code is in no history, and a reload sends none again.
  history.replaceState(null, '', location.pathname)
  if (attempt === undefined || attempt.state !== answer.get('state')) {
    // Another site can open such a URL: it must not end a session.
    if (token.value === undefined) refuse('The answer does not belong to a sign-in of this tab.')
    return
  }
  if (attempt.fragment !== '') location.replace(attempt.fragment)
  try {
    signInWith(attempt, await requestToken(attempt, grantOf(attempt, answer)))
  } catch (error) {
    refuse(reasonOf(error, attempt))
  }
}

function storedAttempt(): Attempt | undefined {
  const text = tabStorage.get(KEY)
  return text === undefined ? undefined : JSON.parse(text)
}

function refuse(problem: string): void {
  signInProblem.set(problem)
  signedOut.set(true)
}

/** @throws TokenRefused if the answer has no code, or is of another provider (RFC 9207) */
function grantOf({ issuer, redirectUri, verifier }: Attempt, answer: URLSearchParams) {
  const code = answer.get('code')
  if (code === null) throw new TokenRefused(answer.get('error_description') ?? answer.get('error') ?? 'no code')
  const from = answer.get('iss') ?? issuer
  if (from !== issuer) throw new TokenRefused(`the answer is of ${from}, and not of ${issuer}`)
  return { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier }
}

function reasonOf(error: unknown, { tokenEndpoint }: Attempt): string {
  if (error instanceof TokenRefused) return `The identity provider gives no token: ${error.message}.`
  // Scripts cannot distinguish a refusal by CORS from a lost connection.
  return `The page got no answer from ${new URL(tokenEndpoint).origin}. Either it is down, or it does not allow the origin ${location.origin} (CORS).`
}

/** Returns 43 random characters, which are allowed in URLs. */
function randomText(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)))
}

async function challengeOf(verifier: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))))
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}
