import { Type } from 'typebox'

import { ManagementError } from '../errors.ts'
import type { ManagementServices, WebhooksPort, WebhookStatus } from '../ports.ts'
import { shownWebhook, webhookSchema } from '../routes/webhooks.ts'
import { defineAction, STRICT } from './action.ts'

const ID = Type.String({ description: 'The id of the subscription.', minLength: 1, maxLength: 64 })
const input = Type.Object({ id: ID }, STRICT)

/** The path to subscriptions is their id, which is in the detail of an entry. */
const noTarget = () => ({})

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

export const pauseWebhook = defineAction({
  name: 'pause_webhook',
  summary: 'Stops the deliveries of a webhook subscription until it is resumed.',
  input,
  data: webhookSchema,
  target: noTarget,
  run: ({ id }, { services }) => shownAfter(id, services, (port) => port.pause(id)),
  detail: detailOf,
})

export const resumeWebhook = defineAction({
  name: 'resume_webhook',
  summary: 'Continues the deliveries of a paused or disabled webhook subscription.',
  input,
  data: webhookSchema,
  target: noTarget,
  run: ({ id }, { services }) => shownAfter(id, services, (port) => port.resume(id)),
  detail: detailOf,
})

export const testWebhook = defineAction({
  name: 'test_webhook',
  summary: 'Sends a signed test message to the endpoint of a webhook subscription.',
  input,
  data: Type.Object({
    id: Type.String(),
    status: Type.Optional(Type.Integer({ description: 'The status of the answer; absent without an answer.' })),
    error: Type.Optional(Type.String({ description: 'The reason for which there was no answer.' })),
  }),
  target: noTarget,
  async run({ id }, { services }) {
    return { id, ...(await found(id, services, (port) => port.test(id))) }
  },
  detail: ({ id, status, error = '' }) => `${id}: ${status ?? error}`,
})

export const redeliverWebhook = defineAction({
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
  data: webhookSchema,
  target: noTarget,
  run: ({ id, sequence }, { services }) => shownAfter(id, services, (port) => port.redeliver(id, sequence)),
  detail: ({ id, next_sequence: next }) => `${id} from sequence ${next ?? 1}`,
})

export const rotateWebhookSecret = defineAction({
  name: 'rotate_webhook_secret',
  summary:
    'Replaces the secret of a webhook subscription by a generated one. For a day, deliveries have signatures of both.',
  // The secret allows forged deliveries.
  input,
  data: Type.Object({
    id: Type.String(),
    secret: Type.String({ description: 'The new secret, `whsec_…`, in this answer only.' }),
  }),
  target: noTarget,
  async run({ id }, { services }) {
    return { id, secret: await found(id, services, (port) => port.rotateSecret(id)) }
  },
  // The audit log never has the secret.
  detail: ({ id }) => id,
})
