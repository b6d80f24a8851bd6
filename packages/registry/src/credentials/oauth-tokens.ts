import { Buffer } from 'node:buffer'

import { encodeText } from '@signalbox/broker-core'
import { isJsonObject, readJson } from '@signalbox/http-kit/internal'
import type { OutboundConnections } from '@signalbox/http-kit/internal'
import { fetchDocument } from '@signalbox/http-kit/internal'

import type { OAuthCredentials } from './agent-credentials.ts'

/** The time for a token endpoint to answer, in ms. */
const FETCH_MS = 10_000
const MAX_ANSWER_BYTES = 65_536

/** The lifetime of a token that names none, in seconds. */
const DEFAULT_LIFETIME_SECONDS = 300

/** The time before its end after which a token is not used any more, in seconds. */
const MARGIN_SECONDS = 30

/** The time after a failure in which the endpoint is not asked again, in ms. */
const PAUSE_MS = 1_000

/** A token, or a failure to get one. */
interface Kept {
  readonly token: Promise<string>
  /** The monotonic time until which it is used; infinite while it is being fetched. */
  until: number
}

/** Access tokens of OAuth client credentials (RFC 6749, section 4.4), fetched when they are needed. */
export class OAuthTokens {
  readonly #connections: OutboundConnections
  readonly #kept = new WeakMap<OAuthCredentials, Kept>()

  constructor(connections: OutboundConnections) {
    this.#connections = connections
  }

  /**
   * Returns a token. Calls at the same time share one request.
   * @throws Error with the reason why there is no token, without secrets
   */
  get(credentials: OAuthCredentials, account: string): Promise<string> {
    const kept = this.#kept.get(credentials)
    if (kept !== undefined && performance.now() < kept.until) return kept.token
    return this.#fetch(credentials, account)
  }

  /** Drops a token that the agent refused. */
  refused(credentials: OAuthCredentials): void {
    this.#kept.delete(credentials)
  }

  #fetch(credentials: OAuthCredentials, account: string): Promise<string> {
    const answer = requestToken(this.#connections, credentials, account)
    const kept: Kept = { token: answer.then(({ token }) => token), until: Infinity }
    this.#kept.set(credentials, kept)
    answer.then(
      ({ lifetimeSeconds }) => {
        // Half of a short lifetime, so that such a token is used at all.
        const usable = Math.max(lifetimeSeconds - MARGIN_SECONDS, lifetimeSeconds / 2)
        kept.until = performance.now() + usable * 1000
      },
      () => {
        kept.until = performance.now() + PAUSE_MS
      },
    )
    return kept.token
  }
}

async function requestToken(
  connections: OutboundConnections,
  { token_url, client_id, client_secret, scope }: OAuthCredentials,
  account: string,
): Promise<{ readonly token: string; readonly lifetimeSeconds: number }> {
  const client = `${formText(client_id)}:${formText(client_secret)}`
  const { status, text } = await fetchDocument(new URL(token_url), {
    connections,
    account,
    accept: 'application/json',
    headers: {
      'Content-Type': 'application/x-www-form-urlencoded',
      Authorization: `Basic ${Buffer.from(client).toString('base64')}`,
    },
    body: encodeText(`grant_type=client_credentials${scope === undefined ? '' : `&scope=${formText(scope)}`}`),
    maxBytes: MAX_ANSWER_BYTES,
    timeoutMs: FETCH_MS,
  })
  if (status !== 200) throw new Error(`the token endpoint answered with status ${status}`)
  const answer = readJson(text)?.value
  const token = isJsonObject(answer) ? answer['access_token'] : undefined
  if (!isJsonObject(answer) || typeof token !== 'string' || !/^[!-~]{1,16384}$/.test(token)) {
    throw new Error('the token endpoint answered without a valid access_token')
  }
  const { expires_in: seconds } = answer
  const lifetimeSeconds = typeof seconds === 'number' && seconds > 0 ? seconds : DEFAULT_LIFETIME_SECONDS
  return { token, lifetimeSeconds }
}

/** Encodes a value for a form, as RFC 6749 has it for the header too. */
function formText(value: string): string {
  return new URLSearchParams({ v: value }).toString().slice(2)
}
