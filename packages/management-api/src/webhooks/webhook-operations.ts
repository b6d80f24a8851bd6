import { RUN_SOURCE, WEBHOOK_SOURCES } from '@signalbox/broker-core/ports'
import { isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import { defineAction, defineManagementRoute, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import { pageOf, pageSchema, pagingParameters } from '../paging.ts'
import type { ManagementServices, WebhooksPort, WebhookStatus } from '../ports.ts'

/** A webhook subscription in answers. */
const webhookSchema = Type.Object({
  id: Type.String(),
  owner: Type.String({ description: 'The ClientID of the owner.' }),
  type: Type.Enum([...WEBHOOK_SOURCES, RUN_SOURCE], {
    description: 'The type of the channel; `run` for the push notifications of a task.',
  }),
  channel: Type.String({ description: 'For the type `run`: agent_id, a slash, and the id of the task.' }),
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

function shownWebhook(webhook: WebhookStatus) {
  const { id, owner, type, channel, endpoint, format, filter, ordered, state, reason, createdMs, next } = webhook
  return {
    id,
    owner,
    type,
    channel,
    endpoint_host: new URL(endpoint).host,
    format,
    filter,
    ordered,
    state,
    reason,
    created_at: isoTime(createdMs),
    next_sequence: next,
    dead_letter_queue: webhook.deadLetterQueue,
  }
}

const webhooksRoute = defineManagementRoute({
  name: '/api/webhooks',
  summary: 'The webhook subscriptions of all owners and nodes, with their states.',
  input: Type.Object(pagingParameters, STRICT),
  output: pageSchema(webhookSchema),
  run(query, { services }) {
    const page = pageOf(services.webhooks?.list() ?? [], ({ id }) => id, query)
    return { ...page, items: page.items.map(shownWebhook) }
  },
})

const ID = Type.String({ description: 'The id of the subscription.', minLength: 1, maxLength: 64 })
const input = Type.Object({ id: ID }, STRICT)

function detailOf({ id, state }: { readonly id: string; readonly state: string }): string {
  return `${id} is ${state}`
}

/** @throws ManagementError WEBHOOK_NOT_FOUND */
async function found<T>(
  id: string,
  { webhooks }: ManagementServices,
  call: (port: WebhooksPort) => Promise<T | undefined>,
): Promise<T> {
  const result = webhooks && (await call(webhooks))
  if (result !== undefined) return result
  throw new ManagementError(
    'WEBHOOK_NOT_FOUND',
    `no webhook subscription has the id ${JSON.stringify(id)}; /api/webhooks lists the subscriptions`,
    { id },
  )
}

function shownAfter(
  id: string,
  services: ManagementServices,
  call: (port: WebhooksPort) => Promise<WebhookStatus | undefined>,
) {
  return found(id, services, call).then(shownWebhook)
}

const pauseWebhook = defineAction({
  name: 'pause_webhook',
  summary: 'Stops the deliveries of a webhook subscription until it is resumed.',
  input,
  output: webhookSchema,
  run: ({ id }, { services }) => shownAfter(id, services, (port) => port.pause(id)),
  detail: detailOf,
})

const resumeWebhook = defineAction({
  name: 'resume_webhook',
  summary: 'Continues the deliveries of a paused or disabled webhook subscription.',
  input,
  output: webhookSchema,
  run: ({ id }, { services }) => shownAfter(id, services, (port) => port.resume(id)),
  detail: detailOf,
})

const testWebhook = defineAction({
  name: 'test_webhook',
  summary: 'Sends a signed test message to the endpoint of a webhook subscription.',
  input,
  output: Type.Object({
    id: Type.String(),
    status: Type.Optional(Type.Integer({ description: 'The status of the answer; absent without an answer.' })),
    error: Type.Optional(Type.String({ description: 'The reason for which there was no answer.' })),
  }),
  async run({ id }, { services }) {
    return { id, ...(await found(id, services, (port) => port.test(id))) }
  },
  detail: ({ id, status, error = '' }) => `${id}: ${status ?? error}`,
})

const redeliverWebhook = defineAction({
  name: 'redeliver_webhook',
  summary: 'Delivers the events of an events store from a sequence on, again or for the first time.',
  input: Type.Object(
    {
      id: ID,
      sequence: Type.Integer({
        description: 'The first sequence to deliver.',
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
      }),
    },
    STRICT,
  ),
  output: webhookSchema,
  run: ({ id, sequence }, { services }) => shownAfter(id, services, (port) => port.redeliver(id, sequence)),
  detail: ({ id, next_sequence: next }) => `${id} from sequence ${next ?? 1}`,
})

const rotateWebhookSecret = defineAction({
  name: 'rotate_webhook_secret',
  summary:
    'Replaces the secret of a webhook subscription by a generated one. For a day, deliveries have signatures of both.',
  // The secret allows forged deliveries.
  input,
  output: Type.Object({
    id: Type.String(),
    secret: Type.String({ description: 'The new secret, `whsec_…`, in this answer only.' }),
  }),
  async run({ id }, { services }) {
    return { id, secret: await found(id, services, (port) => port.rotateSecret(id)) }
  },
  // The audit log never has the secret.
  detail: ({ id }) => id,
})

export const webhookOperations: readonly Operation[] = [
  webhooksRoute,
  pauseWebhook,
  resumeWebhook,
  testWebhook,
  redeliverWebhook,
  rotateWebhookSecret,
]
