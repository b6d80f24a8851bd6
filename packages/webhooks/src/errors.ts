import type { WebhookErrorCode, WebhookFailure } from '@signalbox/broker-core/ports'

/** A failed call on {@link Webhooks}. The message names the problem and the remedy. */
export class WebhookError extends Error implements WebhookFailure {
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
