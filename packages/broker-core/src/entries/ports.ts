/** The interfaces that packages share which do not import each other. */
export { isWebhookFailure, WEBHOOK_ERRORS, WEBHOOK_SOURCES, WEBHOOK_STATES } from '../ports/webhooks.ts'
export type {
  CreatedWebhookSubscription,
  NewWebhookSubscription,
  WebhookErrorCode,
  WebhookFailure,
  WebhookSource,
  WebhookState,
  WebhookSubscription,
  WebhookSubscriptions,
} from '../ports/webhooks.ts'
