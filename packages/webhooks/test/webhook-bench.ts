import type { BrokerHandle } from '@signalbox/broker-core'
import { createBroker, encodeText } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { testFolder } from '@signalbox/testkit/test-folder'
import { onTestFinished } from 'vitest'

import type { NewSubscription, WebhookFormat, WebhookOptions, Webhooks } from '../src/index.ts'
import { abuseProtection, EndpointPolicy, openWebhooks } from '../src/index.ts'

const KEY = new Uint8Array(32).fill(7)

/** Bodies as they are, one in each delivery. */
const PLAIN: WebhookFormat = {
  name: 'plain',
  maxBatch: 1,
  encode: (_type, [message]) => ({
    headers: { 'content-type': 'text/plain' },
    body: message?.body ?? new Uint8Array(),
  }),
  verify: abuseProtection,
}

/** Up to three bodies, in lines. */
const LINES: WebhookFormat = {
  ...PLAIN,
  name: 'lines',
  maxBatch: 3,
  encode: (_type, messages) => ({
    headers: { 'content-type': 'text/plain' },
    body: encodeText(messages.map(({ body }) => new TextDecoder().decode(body)).join('\n')),
  }),
}

export interface Bench {
  readonly system: BrokerHandle
  readonly webhooks: Webhooks
  /** Stops the webhooks, and opens them again over the same store. */
  readonly restart: () => Promise<Webhooks>
  readonly publish: (channel: string, ...texts: readonly string[]) => Promise<void>
}

/** Returns the options of tests: loopback is allowed, and failures are thrown away. */
export function testOptions(options: Partial<WebhookOptions> = {}): WebhookOptions {
  return {
    key: KEY,
    formats: [PLAIN, LINES],
    endpointPolicy: new EndpointPolicy({ allow: ['127.0.0.1'] }),
    ...options,
  }
}

/** Opens webhooks over an embedded engine. All is gone when the test is over. */
export async function openBench(
  options: Partial<WebhookOptions> = {},
  engineOptions: { readonly maxMessageBytes?: number } = {},
): Promise<Bench> {
  const engine = await openEmbeddedEngine({ path: testFolder(), ...engineOptions })
  const { system } = createBroker(engine)
  let webhooks = await openWebhooks(system, testOptions(options))
  onTestFinished(async () => {
    await webhooks.close(0)
    await engine.close()
  })
  return {
    system,
    webhooks,
    async restart() {
      await webhooks.close(0)
      webhooks = await openWebhooks(system, testOptions(options))
      return webhooks
    },
    async publish(channel, ...texts) {
      for (const text of texts) await system.eventsStore.publish(channel, { body: encodeText(text) })
    },
  }
}

/** Returns a subscription of `alice` to the events store `orders`. */
export function toOrders(endpoint: string, more: Partial<NewSubscription> = {}): NewSubscription {
  return { owner: 'alice', type: 'events_store', channel: 'orders', endpoint, format: 'plain', ...more }
}
