/** The interfaces that packages share which do not import each other. */
export type {
  AgentCard,
  AgentDirectory,
  AgentFilter,
  AgentPage,
  AgentReply,
  AgentRequestOptions,
  InboxLeases,
  AgentInboxReceipt,
  AgentInboxRequest,
  AgentRefusal,
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
export type { SourcedMessage, SourceSubscription, WebhookMessageSource } from '../ports/webhook-source.ts'
export { isWebhookFailure, RUN_SOURCE, WEBHOOK_ERRORS, WEBHOOK_SOURCES, WEBHOOK_STATES } from '../ports/webhooks.ts'
export type {
  CreatedWebhookSubscription,
  NewWebhookSubscription,
  WebhookErrorCode,
  WebhookFailure,
  WebhookSource,
  WebhookState,
  WebhookSubscription,
  WebhookSubscriptions,
  WebhookType,
} from '../ports/webhooks.ts'
