import { expect, test } from 'vitest'

import type { WebhooksPort, WebhookStatus } from '../src/index.ts'
import { manage } from './management-server.ts'

const SUBSCRIPTION: WebhookStatus = {
  id: 'one',
  owner: 'shop',
  type: 'events_store',
  channel: 'orders',
  endpoint: 'https://shop.example/hook',
  format: 'structured',
  filter: "type = 'paid'",
  ordered: true,
  state: 'active',
  createdMs: 0,
  next: 7,
  deadLetterQueue: 'webhooks.one.dead-letters',
}

async function change(id: string, changes: Partial<WebhookStatus>): Promise<WebhookStatus | undefined> {
  return id === SUBSCRIPTION.id ? { ...SUBSCRIPTION, ...changes } : undefined
}

/** The host's webhooks with one subscription. */
function oneSubscription(): WebhooksPort {
  return {
    list: () => [SUBSCRIPTION, { ...SUBSCRIPTION, id: 'two', state: 'disabled', reason: 'gone' }],
    pause: (id) => change(id, { state: 'paused' }),
    resume: (id) => change(id, { state: 'active' }),
    redeliver: (id, next) => change(id, { next }),
    test: async (id) => (id === SUBSCRIPTION.id ? { status: 204 } : undefined),
    rotateSecret: async (id) => (id === SUBSCRIPTION.id ? 'whsec_AAAA' : undefined),
  }
}

test('webhooks - operators list, pause, resume, test, replay and give a new secret', async () => {
  const { get, act } = await manage({ services: { webhooks: oneSubscription() } })
  const { data } = await get('/api/webhooks')
  expect(data.items).toMatchObject([
    { id: 'one', owner: 'shop', endpoint_host: 'shop.example', state: 'active', next_sequence: 7 },
    { id: 'two', state: 'disabled', reason: 'gone' },
  ])
  expect((await act('pause_webhook', { id: 'one' })).data).toMatchObject({ state: 'paused' })
  expect((await act('resume_webhook', { id: 'one' })).data).toMatchObject({ state: 'active' })
  expect((await act('redeliver_webhook', { id: 'one', sequence: 3 })).data).toMatchObject({ next_sequence: 3 })
  expect((await act('test_webhook', { id: 'one' })).data).toEqual({ id: 'one', status: 204 })
  expect((await act('rotate_webhook_secret', { id: 'one' })).data).toEqual({ id: 'one', secret: 'whsec_AAAA' })
  await expect
    .poll(async () => (await get('/api/audit')).data.items.map(({ detail }) => detail).toReversed())
    .toEqual(['one is paused', 'one is active', 'one from sequence 3', 'one: 204', 'one'])
})

test.each(['pause_webhook', 'resume_webhook', 'redeliver_webhook', 'test_webhook', 'rotate_webhook_secret'])(
  'webhooks - %s of an unknown subscription fails, also where webhooks are off',
  async (action) => {
    const input = { id: 'none', ...(action === 'redeliver_webhook' ? { sequence: 1 } : {}) }
    for (const services of [{ webhooks: oneSubscription() }, {}]) {
      const { act } = await manage({ services })
      expect(await act(action, input)).toMatchObject({ error: true, data: { code: 'WEBHOOK_NOT_FOUND', id: 'none' } })
    }
  },
)
