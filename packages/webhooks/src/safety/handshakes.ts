import { WebhookError } from '../errors.ts'
import type { Verification, Verified } from '@signalbox/broker-core/ports'

/** The most deliveries in a minute that an endpoint can ask for; a higher rate is no limit. */
const MAX_RATE = 1_000_000

/**
 * Verifies the consent of an endpoint by the abuse protection of CloudEvents webhooks (section 4): `OPTIONS` with
 * `WebHook-Request-Origin`, which the endpoint answers with the same origin, or `*`, in `WebHook-Allowed-Origin`. The
 * later consent by a callback is not offered.
 * @throws WebhookError ENDPOINT_UNVERIFIED
 */
export async function abuseProtection({ ask, origin }: Verification): Promise<Verified> {
  const { status, headers } = await ask({ method: 'OPTIONS', headers: { 'webhook-request-origin': origin } })
  const allowed = valueOf(headers['webhook-allowed-origin'])
  if (status < 200 || status > 299 || (allowed !== '*' && allowed?.toLowerCase() !== origin.toLowerCase())) {
    throw new WebhookError(
      'ENDPOINT_UNVERIFIED',
      `the endpoint answered OPTIONS with status ${status} and without its consent; it must answer 200 with the header WebHook-Allowed-Origin: ${origin}`,
    )
  }
  const rate = Number(valueOf(headers['webhook-allowed-rate']))
  return Number.isInteger(rate) && rate > 0 && rate < MAX_RATE ? { ratePerMinute: rate } : {}
}

function valueOf(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === 'string' ? header.trim() : header?.[0]?.trim()
}

/** The time for which a failed handshake counts, in ms. */
const WINDOW_MS = 60_000

/** The budget of a host, in budgets of callers: one caller alone must not use it up. */
const CALLERS_OF_HOST = 4

/** The handshakes of a caller, or with a host, since a time. */
interface Window {
  readonly endsMs: number
  failed: number
}

/**
 * Limits the failed handshakes in a minute: of one caller, and of all callers with one host. Otherwise a caller could
 * make the server call others as often as it likes.
 */
export class FailedHandshakes {
  readonly #limit: number
  /** In the order of their ends. */
  readonly #windows = new Map<string, Window>()

  /** @param limit The most failed handshakes of one caller in a minute; 0 means no limit */
  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Runs a handshake. It counts as failed until it has succeeded, because many may run at the same time.
   * @throws WebhookError HANDSHAKE_LIMIT; the error of the handshake
   */
  async run<T>(account: string, endpoint: string, handshake: () => Promise<T>): Promise<T> {
    if (this.#limit === 0) return handshake()
    const host = URL.parse(endpoint)?.host
    const now = performance.now()
    this.#forgetBefore(now)
    const windows = [this.#window(`caller ${account}`, this.#limit, now)]
    if (host !== undefined) windows.push(this.#window(`host ${host}`, this.#limit * CALLERS_OF_HOST, now))
    for (const window of windows) window.failed++
    const result = await handshake()
    for (const window of windows) window.failed--
    return result
  }

  /** @throws WebhookError HANDSHAKE_LIMIT */
  #window(key: string, limit: number, now: number): Window {
    const window = this.#windows.get(key) ?? { endsMs: now + WINDOW_MS, failed: 0 }
    this.#windows.set(key, window)
    if (window.failed < limit) return window
    const seconds = Math.ceil((window.endsMs - now) / 1_000)
    const whose = key.startsWith('host ') ? 'handshakes with the host of the endpoint' : 'handshakes of the caller'
    throw new WebhookError(
      'HANDSHAKE_LIMIT',
      `${limit} ${whose} failed in a minute (WEBHOOKS_MAX_FAILED_HANDSHAKES is ${this.#limit}); try again in ${seconds} s`,
      { limit, retryAfterSeconds: seconds },
    )
  }

  #forgetBefore(now: number): void {
    for (const [key, { endsMs }] of this.#windows) {
      if (endsMs > now) return
      this.#windows.delete(key)
    }
  }
}
