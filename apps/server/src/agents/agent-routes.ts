import type { Broker } from '@signalbox/broker-core'
import type { A2aConnector, AgentCallEvent, CardKeys, PushSubscriptions } from '@signalbox/connector-a2a'
import { a2aConnector, NO_CARD_KEYS, openCardKeys } from '@signalbox/connector-a2a'
import type { Authenticator, FrontDoor } from '@signalbox/http-kit'
import type { MapReports } from '@signalbox/management-api'
import type { RegistryRoutes } from '@signalbox/registry'
import { registryRoutes } from '@signalbox/registry'

import type { Config } from '../config/schema.ts'
import { trustedOrigins } from '../config/security.ts'
import { ServerError } from '../errors.ts'
import { requestFields } from '../http/request-log.ts'
import type { Logger } from '../logging/logger.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { NotifySecurity } from '../security/events.ts'
import { VERSION } from '../version.ts'
import type { Agents } from './open-agents.ts'
import { agentAuthorities } from './open-agents.ts'

export interface AgentRouteParts {
  readonly config: Config
  readonly broker: Broker
  readonly authenticator: Authenticator
  /** The keys that sign agent cards. */
  readonly cardKeys: CardKeys
  readonly frontDoor: FrontDoor
  /** The webhooks for push notifications; undefined if webhooks are turned off. */
  readonly push: PushSubscriptions | undefined
  /** Counts calls of agents for operators. @default none */
  readonly map?: Pick<MapReports, 'agentCalled'> | undefined
  readonly metrics: Metrics
  readonly log: Logger
}

/** Creates `/agents`, `/a2a` and the cards. From here on this node serves the registered agents. */
export function agentRoutes(
  agents: Agents,
  { config, broker, authenticator, cardKeys, frontDoor, push, map, metrics, log }: AgentRouteParts,
): { readonly gateway: A2aConnector; readonly routes: RegistryRoutes } {
  const { a2a } = config.connectors
  const { registry, requests, system, addressPolicy, metrics: agentMetrics } = agents
  const edge = {
    authenticator,
    trustedOrigins: trustedOrigins(a2a.trustedOrigins),
    bindHost: config.http.host,
    frontDoor,
    maxBodyBytes: config.maxBodyBytes,
  }
  if (a2a.agentTlsSkipVerify) {
    log.warn(
      "agents' certificates are not verified: CONNECTORSA2_A_AGENT_TLS_SKIP_VERIFY is true, for development only",
    )
  }
  if (a2a.cardKeysFile !== '' && config.publicUrl === '') {
    log.warn('agent cards are not signed: CONNECTORSA2_A_CARD_KEYS_FILE is set, and PUBLIC_URL is not. Set PUBLIC_URL.')
  }
  const called = ({ agentId, clientId, status, firstByteSeconds: seconds }: AgentCallEvent): void => {
    if (clientId !== '') map?.agentCalled({ agentId, clientId, status, seconds })
  }
  const gateway = a2aConnector(
    { broker, system, registry, requests },
    {
      ...edge,
      agentMaxResponseBytes: a2a.agentMaxResponseBytes,
      agentMaxConcurrency: a2a.agentMaxConcurrency,
      agentTlsSkipVerify: a2a.agentTlsSkipVerify,
      addressPolicy,
      maxSseIdleSeconds: a2a.maxSseIdleSeconds,
      streamLimits: { slowConsumerMs: a2a.slowConsumerSeconds * 1000 },
      native: a2a.native,
      taskIsolation: a2a.taskIsolation,
      log: a2a.log,
      shared: config.engine === 'nats',
      logSeconds: a2a.logSeconds,
      logBytes: a2a.logBytes,
      maxRuns: a2a.logRunsMax,
      maxRunsPerCaller: config.limits.caller.runs,
      ...(a2a.agentCaFile === '' ? {} : { agentCa: agentAuthorities(a2a.agentCaFile) }),
      ...(a2a.agentProxyUrl === '' ? {} : { agentProxyUrl: a2a.agentProxyUrl }),
      platform: { version: VERSION },
      ...(a2a.rootAgent === '' ? {} : { rootAgentId: a2a.rootAgent }),
      ...(config.publicUrl === '' ? {} : { publicUrl: config.publicUrl }),
      cardKeys,
      ...(push === undefined ? {} : { push }),
      hooks: {
        requestFinished(event) {
          agentMetrics.requestEnded(event)
          called(event)
        },
        directoryCallFinished: called,
        failed: (error, request) =>
          log.error({ err: error, connector: 'a2a', ...requestFields(request) }, 'agent gateway failed'),
      },
    },
  )
  agentMetrics.watch({
    isRegistered: (agentId) => registry.get(agentId) !== undefined,
    inFlight: () => registry.list().map(({ agent_id }) => [agent_id, gateway.inFlight(agent_id)] as const),
    inFlightByInstance: (agentId) => gateway.inFlightByInstance(agentId),
    openStreams: () => gateway.openStreams(),
    runs: { counts: gateway.runCounts, inProgress: () => gateway.runsInProgress(), inboxes: gateway.inboxes },
  })
  metrics.watchStreams('a2a', () => gateway.openStreams())
  const observe = metrics.requestsOf('registry')
  const routes = registryRoutes(registry, {
    ...edge,
    broker,
    ...(gateway.inbox === undefined ? {} : { inbox: gateway.inbox }),
    hooks: {
      requestFinished: ({ outcome, seconds }) => observe(outcome, seconds),
      failed: (error, request) =>
        log.error({ err: error, connector: 'registry', ...requestFields(request) }, 'agent registry request failed'),
    },
  })
  return { gateway, routes }
}

/**
 * Opens the keys that sign agent cards, if the configuration names a file of them.
 * @throws ServerError CONFIG_INVALID for a file that cannot be read or has other keys
 */
export function openSigningKeys({ connectors: { a2a } }: Config, notify: NotifySecurity): CardKeys {
  if (!a2a.enable || a2a.cardKeysFile === '') return NO_CARD_KEYS
  try {
    return openCardKeys(a2a.cardKeysFile, {
      changed: (kids) => notify({ kind: 'card_keys.reloaded', kids }),
      failed: (reason) => notify({ kind: 'card_keys.failed', reason }),
    })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ServerError('CONFIG_INVALID', [`connectors.a2a.cardKeysFile: ${reason}`], { cause: error })
  }
}
