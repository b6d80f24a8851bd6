import {
  ErrorAnswerSchema,
  SecretSchema,
  SubscriptionBodySchema,
  SubscriptionSchema,
} from '@signalbox/connector-cloudevents'
import type { DocumentedRoute } from '@signalbox/management-api'
import { Type } from 'typebox'

const COMMON = { listener: 'shared', tag: 'Webhooks' } as const

const REFUSALS: DocumentedRoute['responses'] = {
  '4XX': { description: 'The request is invalid or not allowed.', schema: ErrorAnswerSchema },
  '5XX': { description: 'The request cannot be executed at the moment.', schema: ErrorAnswerSchema },
}

const PATH = '/ce/subscriptions'

const ONE = {
  path: `${PATH}/{id}`,
  parameters: { id: Type.String({ description: 'The id of a subscription of the caller.' }) },
  responses: { 200: { description: 'The subscription.', schema: SubscriptionSchema }, ...REFUSALS },
}

/** The subscriptions of webhooks. */
export const WEBHOOK_ROUTES: readonly DocumentedRoute[] = [
  {
    ...COMMON,
    method: 'POST',
    path: PATH,
    summary: 'Creates a webhook subscription, after the endpoint has agreed to it.',
    body: { mediaType: 'application/json', schema: SubscriptionBodySchema },
    responses: {
      201: { description: 'The subscription, with a generated secret.', schema: SubscriptionSchema },
      ...REFUSALS,
    },
  },
  {
    ...COMMON,
    method: 'GET',
    path: PATH,
    summary: 'Lists the webhook subscriptions of the caller.',
    responses: { 200: { description: 'The subscriptions.', schema: Type.Array(SubscriptionSchema) }, ...REFUSALS },
  },
  { ...COMMON, ...ONE, method: 'GET', summary: 'Shows a webhook subscription of the caller.' },
  {
    ...COMMON,
    ...ONE,
    method: 'POST',
    path: `${PATH}/{id}/secret`,
    summary: 'Replaces the secret of a webhook subscription. For a day, deliveries have signatures of both.',
    responses: { 200: { description: 'The new secret.', schema: SecretSchema }, ...REFUSALS },
  },
  { ...COMMON, ...ONE, method: 'DELETE', summary: 'Ends a webhook subscription of the caller.' },
]
