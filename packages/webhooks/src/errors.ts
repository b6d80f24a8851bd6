/** The errors of calls on {@link Webhooks}, each with its cause. Codes are stable. */
export const WEBHOOK_ERRORS = {
  /** `details.member` names the wrong member of the subscription. */
  SUBSCRIPTION_INVALID: 'a member of the subscription is missing, mistyped or out of range',
  /** Also for a subscription of another owner. */
  SUBSCRIPTION_UNKNOWN: 'no subscription of this owner has this id',
  /** `details.limit`. */
  SUBSCRIPTION_LIMIT: 'the owner has as many subscriptions as allowed',
  ENDPOINT_REFUSED: 'the URL of the endpoint may not be called',
  ENDPOINT_UNVERIFIED: 'the endpoint did not agree to receive messages of this server',
  /** `details.limit`, `details.retryAfterSeconds`. */
  HANDSHAKE_LIMIT: 'too many endpoints of the owner, or of the same host, did not agree in the last minute',
  WEBHOOKS_UNAVAILABLE: 'the subscriptions are not read yet, or the server is shutting down',
} as const

export type WebhookErrorCode = keyof typeof WEBHOOK_ERRORS

/** A failed call on {@link Webhooks}. The message names the problem and the remedy. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
  readonly code: WebhookErrorCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: WebhookErrorCode, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message)
    this.code = code
    this.details = details
  }
}

/** Returns the error for a wrong member of a subscription. */
export function invalidMember(member: string, problem: string): WebhookError {
  return new WebhookError('SUBSCRIPTION_INVALID', `invalid subscription: ${member} ${problem}`, { member })
}

export function unknownSubscription(id: string): WebhookError {
  const shown = JSON.stringify(id.slice(0, 64))
  return new WebhookError(
    'SUBSCRIPTION_UNKNOWN',
    `there is no subscription ${shown} of this caller; list them to see all`,
  )
}
