import { answerSchema, CE_ROUTES, ErrorAnswerSchema } from '@signalbox/connector-cloudevents'
import type { CeRoute } from '@signalbox/connector-cloudevents'
import type { DocumentedRoute } from '@signalbox/management-api'
import { Type } from 'typebox'

/** The routes below `/ce`. */
export const CLOUD_EVENTS_ROUTES: readonly DocumentedRoute[] = CE_ROUTES.map(cloudEventsRoute)

function cloudEventsRoute({ name, method, summary, query, body, answer }: CeRoute): DocumentedRoute {
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
