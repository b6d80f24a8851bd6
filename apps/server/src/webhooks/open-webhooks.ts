import type { Broker, BrokerHandle, Engine } from '@signalbox/broker-core'
import { BrokerError } from '@signalbox/broker-core'
import { RUN_SOURCE } from '@signalbox/broker-core/ports'
import type { PushSubscriptions as AgentPushSubscriptions } from '@signalbox/connector-a2a'
import type { PushSubscriptions } from '@signalbox/connector-cloudevents'
import { CE_PUSH_FORMATS } from '@signalbox/connector-cloudevents'
import type { EventTypeOptions, EventWebhooks } from '@signalbox/connector-mcp/events'
import { eventWebhookFormat } from '@signalbox/connector-mcp/events'
import type { ResolveHost } from '@signalbox/http-kit'
import type { ListeningAddress } from '@signalbox/http-kit/internal'
import type { AuditLog, MapReports, WebhooksPort } from '@signalbox/management-api'
import type { SubscriptionView, Webhooks } from '@signalbox/webhooks'
import { abuseProtection, EndpointPolicy, openKeyFile, openWebhooks, WebhookError } from '@signalbox/webhooks'

import type { Config } from '../config/schema.ts'
import { ServerError } from '../errors.ts'
import type { Logger } from '../logging/logger.ts'
import type { Metrics } from '../metrics/metrics.ts'

export interface WebhookParts {
  readonly broker: Broker
  /** The handle for reserved channels. */
  readonly system: BrokerHandle
  readonly engine: Pick<Engine, 'capabilities'>
  readonly metrics: Metrics
  readonly log: Logger
  readonly audit: Pick<AuditLog, 'record'>
  readonly map: Pick<MapReports, 'webhookAttempted'>
  /** The event types of operators, for `/mcp`. */
  readonly eventTypes: readonly EventTypeOptions[]
  readonly resolve: ResolveHost
  /** The listeners of this server that are open already. */
  readonly ownAddresses: () => readonly ListeningAddress[]
}

/** The webhooks, as the listeners use them. */
export interface ServerWebhooks {
  /** For `/ce/subscriptions`. */
  readonly push: PushSubscriptions
  /** For the push notifications of agents. */
  readonly agentPush: AgentPushSubscriptions
  /** For the events of `/mcp`. */
  readonly events: EventWebhooks
  /** For the management API. */
  readonly managed: WebhooksPort
  close(graceMs: number): Promise<void>
}

/**
 * Opens the webhooks. Resolves when every subscription is known. The caller must close them.
 * @throws ServerError START_FAILED for a key file that cannot be used
 */
export async function openServerWebhooks(config: Config, parts: WebhookParts): Promise<ServerWebhooks> {
  const { broker, system, engine, metrics, log, audit, map, eventTypes, resolve, ownAddresses } = parts
  const { webhooks: settings, http, publicUrl } = config
  const webhookMetrics = metrics.forWebhooks()
  const eventFormat = eventWebhookFormat(eventTypes)
  try {
    const webhooks = await openWebhooks(system, {
      key: await openKeyFile(settings.keyFile),
      formats: [
        ...Object.values(CE_PUSH_FORMATS).map(({ name, maxBatch, encode }) => ({
          name,
          maxBatch,
          encode,
          verify: abuseProtection,
        })),
        eventFormat,
      ],
      endpointPolicy: new EndpointPolicy({ allow: settings.allow, ownAddresses, resolve }),
      origin: publicUrl === '' ? http.host : new URL(publicUrl).hostname,
      maxAgeMs: settings.maxAgeSeconds * 1000,
      maxPerOwner: settings.maxPerOwner,
      maxFailedHandshakes: settings.maxFailedHandshakes,
      shared: engine.capabilities.remoteStorage,
      permits: (owner, type, channel) =>
        broker.as(owner).permits(type === 'queues' ? 'receive' : 'subscribe', type, channel),
      hooks: {
        attempted(outcome, seconds, { id, type, channel }) {
          webhookMetrics.attempted(outcome, seconds)
          map.webhookAttempted({ id, type, channel, delivered: outcome === 'delivered', seconds })
        },
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
      agentPush: agentPushSubscriptions(webhooks, audit),
      events: eventSubscriptions(webhooks, eventFormat.name, audit),
      managed: managedWebhooks(webhooks),
      close: (graceMs) => webhooks.close(graceMs),
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ServerError('START_FAILED', [`webhooks: ${reason}`], { cause: error })
  }
}

const CE_FORMATS: ReadonlySet<string> = new Set(Object.values(CE_PUSH_FORMATS).map(({ name }) => name))

/** Returns the subscriptions for `/ce/subscriptions`, with audit entries for their changes. */
function pushSubscriptions(webhooks: Webhooks, audit: Pick<AuditLog, 'record'>): PushSubscriptions {
  // Those of `/mcp` have other rules.
  const get = async (id: string, owner: string): Promise<SubscriptionView> => {
    const subscription = await webhooks.get(id, owner)
    if (CE_FORMATS.has(subscription.format)) return subscription
    throw new WebhookError(
      'SUBSCRIPTION_UNKNOWN',
      `the subscription ${id} belongs to /mcp; end it with events/unsubscribe`,
    )
  }
  return {
    async create(input) {
      const created = await webhooks.create(input)
      recordChange(audit, 'create_webhook', created.subscription)
      return created
    },
    list: (owner) => webhooks.list(owner).filter(({ format }) => CE_FORMATS.has(format)),
    get,
    async rotateSecret(id, owner) {
      const subscription = await get(id, owner)
      const secret = await webhooks.rotateSecret(id, owner)
      recordChange(audit, 'rotate_webhook_secret', subscription)
      return secret
    },
    async delete(id, owner) {
      await get(id, owner)
      const subscription = await webhooks.delete(id, owner)
      recordChange(audit, 'delete_webhook', subscription)
      return subscription
    },
  }
}

/** Returns the subscriptions for push notifications of agents, with audit entries for their changes. */
function agentPushSubscriptions(webhooks: Webhooks, audit: Pick<AuditLog, 'record'>): AgentPushSubscriptions {
  return {
    registerSource: (source) => webhooks.registerSource(source),
    check: (input) => webhooks.check(input),
    async put(id, input) {
      const subscription = await webhooks.put(id, input)
      recordChange(audit, 'create_webhook', subscription)
      return subscription
    },
    async find(id) {
      try {
        return await webhooks.get(id)
      } catch (error) {
        if (error instanceof WebhookError && error.code === 'SUBSCRIPTION_UNKNOWN') return undefined
        throw error
      }
    },
    ofChannel: (channel) => webhooks.ofChannel(RUN_SOURCE, channel),
    async delete(id, owner) {
      recordChange(audit, 'delete_webhook', await webhooks.delete(id, owner))
    },
  }
}

/** Returns the subscriptions for the events of `/mcp`, with audit entries for their changes. */
function eventSubscriptions(webhooks: Webhooks, format: string, audit: Pick<AuditLog, 'record'>): EventWebhooks {
  return {
    async put(id, input) {
      const subscription = await webhooks.put(id, { ...input, format })
      recordChange(audit, 'create_webhook', subscription)
      return subscription
    },
    async delete(id, owner) {
      recordChange(audit, 'delete_webhook', await webhooks.delete(id, owner))
    },
  }
}

function recordChange(
  audit: Pick<AuditLog, 'record'>,
  action: string,
  { id, owner, type, channel, endpoint }: SubscriptionView,
): void {
  // The path and the query of an endpoint can contain secrets.
  audit.record({
    client: owner,
    action,
    outcome: 'success',
    // The channel of a source of agents is a task of one.
    ...(type === RUN_SOURCE ? { agent: channel.slice(0, channel.indexOf('/')) } : { type, channel }),
    detail: `${id} to ${new URL(endpoint).host}`,
  })
}

/** Returns the webhook subscriptions as the management API lists and changes them. */
function managedWebhooks(webhooks: Webhooks): WebhooksPort {
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
