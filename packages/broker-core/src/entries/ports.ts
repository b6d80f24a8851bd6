/** The interfaces that packages share which do not import each other. */
export type {
  AgentCard,
  AgentDirectory,
  AgentFilter,
  AgentPage,
  AgentReply,
  AgentRequestOptions,
  AgentSkill,
  ReplyBudget,
} from '../ports/agents.ts'
export type {
  DeliverySubscription,
  EncodedDelivery,
  EndpointAnswer,
  EndpointRequest,
  Verification,
  Verified,
  WebhookFormat,
} from '../ports/webhook-format.ts'
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
