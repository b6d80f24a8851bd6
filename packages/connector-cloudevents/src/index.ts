export { CE_ERRORS } from './errors.ts'
export type { CeErrorCode } from './errors.ts'
export { MESSAGE_TYPE } from './event/event-text.ts'
export type { CeConnectorOptions, CeHooks, CeOutcome, CeRequestEvent } from './options.ts'
export { ceConnector, documentedCeRoutes } from './connector.ts'
export type { CeConnector } from './connector.ts'
export { CE_PUSH_FORMATS } from './push/push-formats.ts'
export type { PushFormat } from './push/push-formats.ts'
export type { WebhookErrorCode as PushErrorCode } from '@signalbox/broker-core/ports'
export type {
  CreatedPushSubscription,
  NewPushSubscription,
  PushSubscription,
  PushSubscriptions,
} from './push/push-subscriptions.ts'
export { CE_ROUTES } from './routes/index.ts'
export type { DocumentedAnswer } from './routes/answers.ts'
export type { CeRoute } from './routes/route.ts'
export type { SubscriptionInfo } from './sse/subscriptions.ts'
