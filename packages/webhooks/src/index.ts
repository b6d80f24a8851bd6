export type { AttemptOutcome } from './delivery/attempt.ts'
export type { TestResult } from './delivery/test-delivery.ts'
export { WEBHOOK_ERRORS, WebhookError } from './errors.ts'
export type { WebhookErrorCode } from './errors.ts'
export type {
  DeliverySubscription,
  EncodedDelivery,
  EndpointAnswer,
  EndpointRequest,
  Verification,
  Verified,
  WebhookFormat,
} from './format.ts'
export type { WebhookHooks, WebhookOptions } from './options.ts'
export { abuseProtection } from './safety/abuse-protection.ts'
export { EndpointPolicy } from './safety/endpoint-policy.ts'
export type { EndpointPolicyOptions } from './safety/endpoint-policy.ts'
export { KEY_BYTES, openKeyFile } from '@signalbox/http-kit'
export type { NewSubscription } from './subscription/new-subscription.ts'
export { SOURCE_TYPES } from './subscription/subscription-record.ts'
export type { SourceType } from './subscription/subscription-record.ts'
export { SUBSCRIPTION_STATES } from './subscription/subscription-view.ts'
export type { SubscriptionState, SubscriptionView } from './subscription/subscription-view.ts'
export { openWebhooks } from './open-webhooks.ts'
export { Webhooks } from './webhooks.ts'
export type { CreatedSubscription, WebhookStats } from './webhooks.ts'
