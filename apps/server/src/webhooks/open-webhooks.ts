import type { Broker, BrokerHandle, Engine } from '@signalbox/broker-core'
import type { PushSubscriptions } from '@signalbox/connector-cloudevents'
import { CE_PUSH_FORMATS } from '@signalbox/connector-cloudevents'
import type { ListeningAddress } from '@signalbox/http-kit'
import type { AuditLog, WebhooksPort } from '@signalbox/management-api'
import type { SubscriptionView, Webhooks } from '@signalbox/webhooks'
import { abuseProtection, EndpointPolicy, openKeyFile, openWebhooks } from '@signalbox/webhooks'

import type { Config } from '../config/schema.ts'
import { ServerError } from '../errors.ts'
import type { Logger } from '../logging/logger.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { managedWebhooks } from './managed-webhooks.ts'

export interface WebhookParts {
  readonly broker: Broker
  /** The handle for reserved channels. */
  readonly system: BrokerHandle
  readonly engine: Pick<Engine, 'capabilities'>
  readonly metrics: Metrics
  readonly log: Logger
  readonly audit: Pick<AuditLog, 'record'>
  /** The listeners of this server that are open already. */
  readonly ownAddresses: () => readonly ListeningAddress[]
}

/** The webhooks, as the listeners use them. */
export interface ServerWebhooks {
  /** For `/ce/subscriptions`. */
  readonly push: PushSubscriptions
  /** For the management API. */
  readonly managed: WebhooksPort
  close(graceMs: number): Promise<void>
}

/**
 * Opens the webhooks. Resolves when every subscription is known. The caller must close them.
 * @throws ServerError START_FAILED for a key file that cannot be used
 */
export async function openServerWebhooks(config: Config, parts: WebhookParts): Promise<ServerWebhooks> {
  const { broker, system, engine, metrics, log, audit, ownAddresses } = parts
  const { webhooks: settings, http, publicUrl } = config
  const webhookMetrics = metrics.forWebhooks()
  try {
    const webhooks = await openWebhooks(system, {
      key: await openKeyFile(settings.keyFile),
      formats: Object.values(CE_PUSH_FORMATS).map(({ name, maxBatch, encode }) => ({
        name,
        maxBatch,
        encode,
        verify: abuseProtection,
      })),
      endpointPolicy: new EndpointPolicy({ allow: settings.allow, ownAddresses }),
      origin: publicUrl === '' ? http.host : new URL(publicUrl).hostname,
      maxAgeMs: settings.maxAgeSeconds * 1000,
      maxPerOwner: settings.maxPerOwner,
      shared: engine.capabilities.remoteStorage,
      permits: (owner, type, channel) =>
        broker.as(owner).permits(type === 'queues' ? 'receive' : 'subscribe', type, channel),
      hooks: {
        attempted: (outcome, seconds) => webhookMetrics.attempted(outcome, seconds),
        deadLettered: () => webhookMetrics.deadLettered(),
        dropped: () => webhookMetrics.dropped(),
        disabled({ id, owner, reason }) {
          log.warn({ subscription: id, owner, reason }, 'webhook subscription disabled')
          audit.record({ client: owner, action: 'disable_webhook', outcome: 'success', detail: `${id}: ${reason}` })
        },
        failed: (error) => log.error({ err: error }, 'webhooks failed'),
      },
    })
    webhookMetrics.watch(() => webhooks.stats())
    return {
      push: pushSubscriptions(webhooks, audit),
      managed: managedWebhooks(webhooks),
      close: (graceMs) => webhooks.close(graceMs),
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ServerError('START_FAILED', [`webhooks: ${reason}`], { cause: error })
  }
}

/** Returns the subscriptions for `/ce/subscriptions`, with audit entries for their changes. */
function pushSubscriptions(webhooks: Webhooks, audit: Pick<AuditLog, 'record'>): PushSubscriptions {
  const record = (action: string, { id, owner, type, channel, endpoint }: SubscriptionView): void =>
    // The path and the query of an endpoint can contain secrets.
    audit.record({
      client: owner,
      action,
      outcome: 'success',
      type,
      channel,
      detail: `${id} to ${new URL(endpoint).host}`,
    })
  return {
    async create(input) {
      const created = await webhooks.create(input)
      record('create_webhook', created.subscription)
      return created
    },
    list: (owner) => webhooks.list(owner),
    get: (id, owner) => webhooks.get(id, owner),
    async delete(id, owner) {
      const subscription = await webhooks.delete(id, owner)
      record('delete_webhook', subscription)
      return subscription
    },
  }
}
