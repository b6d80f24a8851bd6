import type { Verification, Verified } from '../format.ts'
import { WebhookError } from '../errors.ts'

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
