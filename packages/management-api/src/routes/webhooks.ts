import { argument, isoTime } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { pageOf, pageSchema, pagingParameters } from '../paging.ts'
import type { WebhookStatus } from '../ports.ts'
import { defineManagementRoute, STRICT } from './route.ts'

/** A webhook subscription in answers. */
export const webhookSchema = Type.Object({
  id: Type.String(),
  owner: Type.String({ description: 'The ClientID of the owner.' }),
  type: argument.channelType('The type of the channel.'),
  channel: Type.String(),
  endpoint_host: Type.String({ description: 'The host and port of the endpoint. The rest of its URL can be secret.' }),
  format: Type.String({ description: 'The form of the deliveries.' }),
  filter: Type.Optional(Type.String({ description: 'The CESQL expression.' })),
  ordered: Type.Boolean(),
  state: Type.Enum(['active', 'failing', 'paused', 'disabled']),
  reason: Type.Optional(Type.String({ description: 'The reason for the states failing and disabled.' })),
  created_at: Type.String({ description: 'ISO 8601.' }),
  next_sequence: Type.Optional(
    Type.Integer({ minimum: 1, description: 'The first sequence of an events store that is not delivered.' }),
  ),
  dead_letter_queue: Type.String(),
})

export function shownWebhook(webhook: WebhookStatus) {
  const { id, owner, type, channel, endpoint, format, filter, ordered, state, reason, createdMs, next } = webhook
  return {
    id,
    owner,
    type,
    channel,
    endpoint_host: new URL(endpoint).host,
    format,
    ...(filter === undefined ? {} : { filter }),
    ordered,
    state,
    ...(reason === undefined ? {} : { reason }),
    created_at: isoTime(createdMs),
    ...(next === undefined ? {} : { next_sequence: next }),
    dead_letter_queue: webhook.deadLetterQueue,
  }
}

export const webhooksRoute = defineManagementRoute({
  path: '/api/webhooks',
  summary: 'The webhook subscriptions of all owners and nodes, with their states.',
  query: Type.Object(pagingParameters, STRICT),
  data: pageSchema(webhookSchema),
  run(query, { services }) {
    const page = pageOf(services.webhooks?.list() ?? [], ({ id }) => id, query)
    return { ...page, items: page.items.map(shownWebhook) }
  },
})
