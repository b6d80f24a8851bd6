import type { DocumentedRoute } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { SecretSchema, SubscriptionBodySchema, SubscriptionSchema } from '../push/subscription-shape.ts'
import { answerSchema, ErrorAnswerSchema } from './answers.ts'
import { CE_ROUTES } from './index.ts'
import type { CeRoute } from './route.ts'

/** The routes below `/ce`, for an OpenAPI document. */
export const EVENT_ROUTES: readonly DocumentedRoute[] = CE_ROUTES.map(eventRoute)

function eventRoute({ name, method, summary, headers, input: query, body, output: answer }: CeRoute): DocumentedRoute {
  const done: DocumentedRoute['responses'] =
    answer === undefined
      ? { 200: { description: 'A stream of CloudEvents.', mediaType: 'text/event-stream', schema: Type.String() } }
      : {
          [answer.status]: {
            description: 'Success, or with `is_error: true` a failure.',
            schema: answerSchema(answer.data),
          },
        }
  const route: DocumentedRoute = {
    method,
    path: `/ce/${name}`,
    listener: 'shared',
    tag: 'CloudEvents',
    summary,
    query,
    headers,
    responses: {
      ...done,
      '4XX': { description: 'The request is invalid or not allowed.', schema: ErrorAnswerSchema },
      '5XX': { description: 'The request cannot be executed at the moment.', schema: ErrorAnswerSchema },
    },
  }
  if (body === 'ignored') return route
  const description = `A CloudEvent in structured or binary mode${body === 'events' ? ', or a batch' : ''}.`
  return { ...route, body: { mediaType: 'application/cloudevents+json', description } }
}

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

/** The routes of webhook subscriptions, for an OpenAPI document. */
export const PUSH_ROUTES: readonly DocumentedRoute[] = [
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
