import type { BrokerHandle } from '@signalbox/broker-core'
import { createBroker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'

import type { WebhookFormat, Webhooks } from '../../src/index.ts'
import { abuseProtection, EndpointPolicy, openWebhooks } from '../../src/index.ts'

const PLAIN: WebhookFormat = {
  name: 'plain',
  maxBatch: 1,
  encode: (_type, [message]) => ({ headers: {}, body: message?.body ?? new Uint8Array() }),
  verify: abuseProtection,
}

/** Opens a broker whose webhooks deliver bodies as they are, also to loopback. */
export async function openPlainWebhooks(
  path: string,
): Promise<{ readonly system: BrokerHandle; readonly webhooks: Webhooks }> {
  const { system } = createBroker(await openEmbeddedEngine({ path }))
  const webhooks = await openWebhooks(system, {
    key: new Uint8Array(32),
    formats: [PLAIN],
    endpointPolicy: new EndpointPolicy({ allow: ['127.0.0.1'] }),
  })
  return { system, webhooks }
}
