export type { AttemptOutcome } from './delivery/attempt.ts'
export type { TestResult } from './delivery/attempt.ts'
export { WebhookError } from './errors.ts'
export type {
  DeliverySubscription,
  EncodedDelivery,
  EndpointAnswer,
  EndpointRequest,
  Verification,
  Verified,
  WebhookFormat,
  WebhookMessageSource,
} from '@signalbox/broker-core/ports'
export type { WebhookHooks, WebhookOptions } from './options.ts'
export { abuseProtection } from './safety/handshakes.ts'
export { EndpointPolicy } from './safety/endpoint-policy.ts'
export type { EndpointPolicyOptions } from './safety/endpoint-policy.ts'
export { KEY_BYTES, openKeyFile } from '@signalbox/http-kit/internal'
export {
  WEBHOOK_ERRORS,
  WEBHOOK_SOURCES as SOURCE_TYPES,
  WEBHOOK_STATES as SUBSCRIPTION_STATES,
} from '@signalbox/broker-core/ports'
export type {
  CreatedWebhookSubscription as CreatedSubscription,
  NewWebhookSubscription as NewSubscription,
  WebhookErrorCode,
  WebhookSource as SourceType,
  WebhookState as SubscriptionState,
  WebhookSubscription as SubscriptionView,
} from '@signalbox/broker-core/ports'
export { openWebhooks } from './webhooks.ts'
export { Webhooks } from './webhooks.ts'
export type { WebhookStats } from './webhooks.ts'
