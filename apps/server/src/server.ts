import { hostname } from 'node:os'

import type { Broker } from '@signalbox/broker-core'
import { createBroker } from '@signalbox/broker-core'
import { nameMatcher } from '@signalbox/broker-core/internal'
import { limitConnections, NameResolver, openFileLimit, paceFloods } from '@signalbox/http-kit/internal'
import type { ConnectionLimitOptions, RefusalReport } from '@signalbox/http-kit/internal'
import { Schedules } from '@signalbox/channel-settings'
import { AuditLog } from '@signalbox/management-api/fastify'

import { openSigningKeys } from './agents/agent-routes.ts'
import type { CredentialsFile } from './agents/credentials-file.ts'
import type { Agents } from './agents/open-agents.ts'
import { AgentAudit, managedAgents, openAgents } from './agents/open-agents.ts'
import { openChannelSettings } from './channels/channel-settings.ts'
import type { Config } from './config/schema.ts'
import type { Origins } from './config/setting-statuses.ts'
import { openEngine, warnOfOpenEngine } from './engine/engines.ts'
import { Health, healthOf } from './health/health.ts'
import { RequestLog } from './http/request-log.ts'
import { DisposalStack, untilAborted } from './lifecycle/disposal-stack.ts'
import type { ConfigFile } from './limits/front-door.ts'
import { openFrontDoor, watchLimits } from './limits/front-door.ts'
import type { Address } from './listeners/address.ts'
import { drain, listen } from './listeners/address.ts'
import { createManagementListener } from './listeners/management-listener.ts'
import { createSharedRoutes } from './listeners/shared-listener.ts'
import { SharedServer } from './listeners/shared-server.ts'
import type { Logger } from './logging/logger.ts'
import { createLogger } from './logging/logger.ts'
import { ConnectorOperations, createManagementApi } from './management/management-api.ts'
import { mcpEventTypes, mcpTasks, openMcpEvents } from './mcp/options.ts'
import { Metrics } from './metrics/metrics.ts'
import { openRoutingFile } from './routing/routing-file.ts'
import { openAuthentication } from './security/authentication.ts'
import type { NotifySecurity } from './security/events.ts'
import { auditSecurity, logSecurity } from './security/events.ts'
import { openPolicyFile } from './security/policy-file.ts'
import { SecurityState } from './security/security-state.ts'
import { openTls } from './security/tls.ts'
import { warnOfOpenDoors } from './security/warnings.ts'
import type { Environment } from './telemetry/telemetry.ts'
import { openTelemetry } from './telemetry/telemetry.ts'
import { VERSION } from './version.ts'
import type { ServerWebhooks, WebhookParts } from './webhooks/open-webhooks.ts'

export interface ServerOptions {
  /** @default a log according to `config.log` */
  readonly log?: Logger | undefined
  /** The environment variables of OpenTelemetry (`OTEL_*`). @default traces are not exported */
  readonly env?: Environment | undefined
  /** The sources of the settings, for operators. @default a program passed the configuration */
  readonly origins?: Origins | undefined
  /** A file whose limits are applied again after each change. @default none */
  readonly configFile?: ConfigFile | undefined
  /**
   * Aborting it ends a start: opened parts are closed, and the start rejects with the signal's
   * reason.
   */
  readonly signal?: AbortSignal | undefined
}

/** A server that accepts calls. */
export interface RunningServer extends AsyncDisposable {
  /** The shared listener. */
  readonly http: Address
  /** The management listener. */
  readonly api: Address
  /** For subscribers in the same process. */
  readonly broker: Broker
  /**
   * Shuts down: reports not ready, refuses new calls, waits up to `shutdownSeconds` for calls in
   * flight, ends streams, settles delivered messages, closes the store. Idempotent.
   */
  close(): Promise<void>
}

/** The time after which a listener cuts off calls if it closes without a grace period, in ms. */
const CUT_MS = 1_000

/** The time for deliveries to webhooks that are in flight at a shutdown, in ms. */
const WEBHOOK_GRACE_MS = 3_000

/**
 * Starts the broker: the engine, the Broker over it, and the two listeners. Resolves when calls are
 * accepted.
 * @throws ServerError START_FAILED: a port in use, a store that is in use, damaged or not writable;
 * CONFIG_INVALID: an invalid routing table, policy, key or certificate. All parts are closed then.
 */
export async function startServer(config: Config, options: ServerOptions = {}): Promise<RunningServer> {
  const { signal, configFile, origins, env = {}, log = await createLogger(config.log) } = options
  const opened = new DisposalStack()
  const health = new Health(config.engine, VERSION)
  const close = (): Promise<void> => {
    health.stopping()
    return opened.disposeAsync()
  }
  try {
    const { http, api, broker } = await open(config, { log, signal, configFile, origins, env, health, opened })
    return { http, api, broker, close, [Symbol.asyncDispose]: close }
  } catch (error) {
    await close().catch((failure: unknown) => log.error({ err: failure }, 'a part failed to close'))
    throw error
  }
}

/** A server without webhooks does not load their modules. */
async function loadWebhooks(config: Config, parts: WebhookParts): Promise<ServerWebhooks> {
  const { openServerWebhooks } = await import('./webhooks/open-webhooks.ts')
  return openServerWebhooks(config, parts)
}

/** A server without such a file does not load the parser. */
async function openAgentCredentials(file: string, notify: NotifySecurity): Promise<CredentialsFile> {
  const { openCredentialsFile } = await import('./agents/credentials-file.ts')
  return openCredentialsFile(file, notify)
}

async function openListedAgents(
  { agentsFile }: Config,
  { registry }: Agents,
  log: Logger,
): Promise<AsyncDisposable | undefined> {
  if (agentsFile === '') return undefined
  const { openAgentsFile } = await import('./agents/agents-file.ts')
  return openAgentsFile(agentsFile, registry, log)
}

interface OpenOptions {
  readonly log: Logger
  readonly signal: AbortSignal | undefined
  readonly configFile: ConfigFile | undefined
  readonly origins: Origins | undefined
  readonly env: Environment
  readonly health: Health
  /** Collects each part once it is open. */
  readonly opened: DisposalStack
}

/**
 * Opens the parts in order. A shutdown closes them backwards: the shared listener refuses new calls
 * and finishes those in flight; registry, management API and engine close; the management listener
 * closes, so that probes and a last scrape see the shutdown; files are no longer watched.
 */
async function open(
  config: Config,
  { log, signal, configFile, origins, env, health, opened }: OpenOptions,
): Promise<Pick<RunningServer, 'http' | 'api' | 'broker'>> {
  const routes = opened.use(config.routing.file === '' ? undefined : openRoutingFile(config.routing.file, log))
  const metrics = opened.use(new Metrics())
  metrics.watchNode({ version: VERSION, engine: config.engine, state: () => health.state() })
  const frontDoor = opened.use(openFrontDoor(config, metrics.limits, log))
  opened.use(configFile && watchLimits(configFile, frontDoor, log))

  const audit = new AuditLog({
    maxAgeSeconds: config.audit.maxAgeSeconds,
    maxBytes: config.audit.maxBytes,
    failed: (error) => log.error({ err: error }, 'audit entry dropped'),
  })
  opened.defer(() => audit.close())
  const security = new SecurityState(config)
  const securityListeners = [logSecurity(log), auditSecurity(audit), security.notify]
  const notify: NotifySecurity = (event) => securityListeners.forEach((listener) => listener(event))
  const requests =
    config.log.requests && log.isLevelEnabled('info') ? new RequestLog(log, frontDoor.trustedProxies) : undefined
  const { resolve } = new NameResolver({ servers: config.dnsServers })
  const authentication = opened.use(
    openAuthentication(config, {
      resolve,
      notify,
      verified: requests?.verified,
      refused: (address) => audit.authenticationFailed(address, 'shared'),
    }),
  )
  const policy = opened.use(
    config.authorization.enable ? await openPolicyFile(config.authorization.policyFile, notify) : undefined,
  )
  const eventTypes = await mcpEventTypes(config)
  const cardKeys = opened.use(openSigningKeys(config, notify))
  const operatorCredentials = opened.use(
    config.connectors.a2a.enable && config.agentCredentialsFile !== ''
      ? await openAgentCredentials(config.agentCredentialsFile, notify)
      : undefined,
  )
  const tls = opened.use(openTls(config.security, { log, notify }))
  const managementTls = opened.use(openTls(config.api.security, { log, notify, section: 'api.security' }))

  const operatorApi = createManagementApi({
    config,
    frontDoor,
    health,
    metrics,
    log,
    audit,
    origins,
    security,
    resolve,
    authenticator: authentication.management,
  })
  const management = createManagementListener({
    maxBodyBytes: config.maxBodyBytes,
    health,
    api: operatorApi,
    log,
    tls: managementTls,
    console: config.console.enable,
  })
  const isTrustedProxy = (address: string): boolean => frontDoor.trustedProxies.includes(address)
  const connectionLimit: ConnectionLimitOptions = { openFiles: openFileLimit(), isTrustedProxy }
  const onRefused = (refusal: RefusalReport): void => notify({ kind: 'connections.refused', ...refusal })
  paceFloods(management.server, isTrustedProxy)
  opened.use(limitConnections(management.server, onRefused, { ...connectionLimit, listener: 'management' }))
  opened.defer(() => drain(management.server, CUT_MS, () => management.close()).closed)
  const api = await listen(management.server, 'api', config.api, (bind) => management.listen(bind))

  const shared = new SharedServer({ health, log, tls })
  paceFloods(shared.server, isTrustedProxy)
  opened.use(limitConnections(shared.server, onRefused, connectionLimit))
  let graceMs = CUT_MS
  opened.defer(() => shared.drain(graceMs).closed)
  const http = await listen(shared.server, 'http', config.http)
  const listeners = [api, http]

  const engine = await untilAborted(
    openEngine(config, { metrics, log, signal, waiting: (reason) => health.waiting(reason) }),
    signal,
    (late) => late.close(),
  )
  opened.defer(() => engine.close())
  opened.defer(() => operatorApi.finish())
  const { destinations } = config.telemetry
  const named = destinations.length > 0 ? destinations : config.metrics.queues
  const telemetry = opened.use(
    await openTelemetry(env, { node: engine.node?.id ?? hostname(), destinations: named, log }),
  )
  const { broker, system, operators } = createBroker(engine, {
    observers: [
      metrics.observer,
      ...operatorApi.observers,
      metrics.schemaObserver,
      ...(routes ? [metrics.routingObserver, routes.observer] : []),
      ...(policy || config.authentication.oauth.enable ? [metrics.authorizationObserver] : []),
    ],
    limitsOf: frontDoor.limitsOf,
    onLimit: (name, { account, clientId }) => frontDoor.refused(name, account ?? clientId),
    routing: routes?.routing,
    authorization: policy?.authorization,
    tracing: telemetry?.tracing,
  })
  metrics.watchEngine(() => engine.stats())
  metrics.watchPauses(() => broker.pausedQueues())
  if (config.metrics.queues.length > 0) {
    await metrics.watchQueues(engine, { isListed: nameMatcher(config.metrics.queues), log })
  }

  const channelSettings = await openChannelSettings(config.channelSettingsFile, { broker, system, log, opened })

  const schedules = opened.use(
    await Schedules.open(system, {
      engine,
      fired: (outcome, count, lagMs) => metrics.schedules.fired(outcome, count, lagMs),
      failed: (error) => log.error({ err: error }, 'schedule failed'),
    }),
  )

  const agentAudit = new AgentAudit(audit)
  const agents = config.connectors.a2a.enable
    ? await untilAborted(
        openAgents(config, {
          system,
          engine,
          metrics,
          log,
          audit: agentAudit,
          frontDoor,
          resolve,
          operatorCredentials: operatorCredentials?.of,
          ownAddresses: () => listeners,
        }),
        signal,
        ({ registry }) => registry.close(),
      )
    : undefined
  opened.defer(() => agents?.registry.close())
  opened.use(agents && (await openListedAgents(config, agents, log)))

  const webhooks = config.webhooks.enable
    ? await untilAborted(
        loadWebhooks(config, {
          broker,
          system,
          engine,
          metrics,
          log,
          audit,
          map: operatorApi.map,
          eventTypes,
          resolve,
          ownAddresses: () => listeners,
        }),
        signal,
        (late) => late.close(0),
      )
    : undefined
  opened.defer(() => webhooks?.close(Math.min(WEBHOOK_GRACE_MS, graceMs)))

  const operations = new ConnectorOperations()
  const connectors = await createSharedRoutes({
    config,
    broker,
    system,
    agents,
    push: webhooks?.push,
    agentPush: webhooks?.agentPush,
    events: await openMcpEvents(config, { system, types: eventTypes, webhooks: webhooks?.events }),
    tasks: mcpTasks(config, { system, engine, frontDoor, metrics: metrics.limits }),
    authenticator: authentication.shared,
    cardKeys,
    frontDoor,
    requests,
    operations,
    map: operatorApi.map,
    health,
    metrics,
    log,
  })
  shared.prepare(connectors)
  opened.defer(() => shared.drain(graceMs).finished)
  graceMs = config.shutdownSeconds * 1000
  health.serving({ health: () => healthOf(engine, { agents, channelSettings, schedules }, frontDoor.admission) })
  const { agentTtlSeconds } = config.connectors.a2a
  operatorApi.serve({
    broker: operators,
    system,
    agents: agents && managedAgents(agents, agentAudit, agentTtlSeconds),
    authorization: policy?.authorization,
    routing: routes?.routing,
    channelSettings,
    queuePauses: channelSettings.pauses,
    schedules,
    webhooks: webhooks?.managed,
    ...operations.services(),
  })
  shared.open()
  warnOfOpenDoors(log, config, { server: shared.server, address: http }, { server: management.server, address: api })
  warnOfOpenEngine(log, config)
  return { http, api, broker }
}
