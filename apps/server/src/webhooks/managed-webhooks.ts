import { BrokerError } from '@signalbox/broker-core'
import type { WebhooksPort } from '@signalbox/management-api'
import type { Webhooks } from '@signalbox/webhooks'
import { WebhookError } from '@signalbox/webhooks'

/** Returns the webhook subscriptions as the management API lists and changes them. */
export function managedWebhooks(webhooks: Webhooks): WebhooksPort {
  return {
    list: () => webhooks.list(),
    pause: (id) => ifKnown(() => webhooks.pause(id)),
    resume: (id) => ifKnown(() => webhooks.resume(id)),
    test: (id) => ifKnown(() => webhooks.test(id)),
    rotateSecret: (id) => ifKnown(() => webhooks.rotateSecret(id)),
    redeliver: (id, sequence) => ifKnown(() => webhooks.redeliver(id, sequence)),
  }
}

async function ifKnown<T>(call: () => Promise<T>): Promise<T | undefined> {
  try {
    return await call()
  } catch (error) {
    if (!(error instanceof WebhookError)) throw error
    if (error.code === 'SUBSCRIPTION_UNKNOWN') return undefined
    if (error.code === 'SUBSCRIPTION_INVALID') throw new BrokerError('ARGUMENT_INVALID', error.message, error.details)
    throw error
  }
}
