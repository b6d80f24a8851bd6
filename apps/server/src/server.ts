import type { Broker, EngineHealth } from '@signalbox/broker-core'
import { createBroker } from '@signalbox/broker-core'
import type { AdmissionControl } from '@signalbox/http-kit'
import { AuditLog } from '@signalbox/management-api'

import { untilAborted } from './abortable.ts'
import { AgentAudit } from './agent-audit.ts'
import type { Agents } from './agents.ts'
import { openAgents } from './agents.ts'
import type { Config } from './config/schema.ts'
import { drain } from './drain.ts'
import type { HealthyEngine } from './health.ts'
import { Health } from './health.ts'
import type { Address } from './listeners/address.ts'
import { listen } from './listeners/address.ts'
import { Entrance } from './listeners/entrance.ts'
import { createManagementListener } from './listeners/management.ts'
import { createSharedListener } from './listeners/shared.ts'
import type { Logger } from './log.ts'
import { createLogger } from './log.ts'
import { managedAgents } from './managed-agents.ts'
import { createManagementApi } from './management-api.ts'
import { Metrics } from './metrics/metrics.ts'
import { RequestLog } from './request-log.ts'
import { openRoutingFile } from './routing-file.ts'
import { openAuthentication } from './security/authentication.ts'
import { auditSecurity } from './security/audit.ts'
import type { ConnectionLimitOptions } from './security/connection-limit.ts'
import { limitConnections, openFileLimit } from './security/connection-limit.ts'
import type { NotifySecurity } from './security/events.ts'
import { logSecurity } from './security/events.ts'
import { openFrontDoor } from './security/front-door.ts'
import type { ConfigFile } from './security/limits-file.ts'
import { watchLimits } from './security/limits-file.ts'
import { warnOfOpenNats } from './security/nats-warnings.ts'
import { openPolicyFile } from './security/policy-file.ts'
import { openTls } from './security/tls.ts'
import { warnOfOpenDoors } from './security/warnings.ts'
import { openConfiguredEngine } from './store.ts'
import { VERSION } from './version.ts'

export interface ServerOptions {
  /** @default one as `config.log` says */
  readonly log?: Logger
  /** Limits are taken from it again when it changes. @default none */
  readonly configFile?: ConfigFile
  /** Gives up a start that waits for its store: what was opened is closed, and the start rejects with the signal's reason. */
  readonly signal?: AbortSignal
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
   * Shuts down: not ready, no new calls, those in flight finish within `shutdownSeconds`, streams end, messages that
   * were handed over are settled, the store is closed. Idempotent.
   */
  close(): Promise<void>
}

/**
 * Starts the broker: the engine, the Broker over it, and the two listeners. Resolves when calls are accepted.
 * @throws ServerError START_FAILED: a port in use, a store that is in use, damaged or not writable; CONFIG_INVALID: a
 * routing table, a policy, keys or certificates that are not valid. Nothing stays open.
 */
export async function startServer(config: Config, options: ServerOptions = {}): Promise<RunningServer> {
  const { signal, log = await createLogger(config.log) } = options
  const health = new Health(config.engine, VERSION)
  // What was opened, to be closed in the opposite order when a later step fails.
  const opened: (() => unknown)[] = []
  try {
    const routes = config.routing.file === '' ? undefined : openRoutingFile(config.routing.file, log)
    opened.push(() => routes?.[Symbol.dispose]())

    const metrics = new Metrics()
    opened.push(() => metrics[Symbol.dispose]())
    const frontDoor = openFrontDoor(config, metrics.limits, log)
    opened.push(() => frontDoor[Symbol.dispose]())
    const limitsFile = options.configFile && watchLimits(options.configFile, frontDoor, log)
    opened.push(() => limitsFile?.[Symbol.dispose]())

    const audit = new AuditLog({
      maxAgeSeconds: config.audit.maxAgeSeconds,
      maxBytes: config.audit.maxBytes,
      failed: (error) => log.error({ err: error }, 'audit log: an entry was dropped'),
    })
    opened.push(() => audit.close())
    const securityListeners = [logSecurity(log), auditSecurity(audit)]
    const notify: NotifySecurity = (event) => securityListeners.forEach((listener) => listener(event))
    const requests =
      config.log.requests && log.isLevelEnabled('info') ? new RequestLog(log, frontDoor.trustedProxies) : undefined
    const authentication = openAuthentication(config, {
      notify,
      verified: requests?.verified,
      refused: (address) => audit.authenticationFailed(address, 'shared'),
    })
    opened.push(() => authentication[Symbol.dispose]())
    const policy = config.authorization.enable
      ? await openPolicyFile(config.authorization.policyFile, notify)
      : undefined
    opened.push(() => policy?.[Symbol.dispose]())
    const tls = openTls(config.security, { log, notify })
    opened.push(() => tls?.[Symbol.dispose]())

    const operatorApi = createManagementApi({
      config,
      frontDoor,
      health,
      metrics,
      log,
      audit,
      authenticator: authentication.management,
    })
    const management = createManagementListener({ maxBodyBytes: config.maxBodyBytes, health, api: operatorApi, log })
    opened.push(() => drain(management, 1_000))
    const connectionLimit: ConnectionLimitOptions = {
      openFiles: openFileLimit(),
      isTrustedProxy: (address) => frontDoor.trustedProxies.includes(address),
    }
    const operatorConnections = limitConnections(management.server, notify, {
      ...connectionLimit,
      listener: 'management',
    })
    opened.push(() => operatorConnections[Symbol.dispose]())
    const api = await listen(management, 'api', config.api)

    const entrance = new Entrance({ health, tls })
    opened.push(() => drain(entrance.starting, 1_000))
    const connections = limitConnections(entrance.server, notify, connectionLimit)
    opened.push(() => connections[Symbol.dispose]())
    const http = await listen(entrance.starting, 'http', config.http)
    const listeners = [api, http]

    const engine = await untilAborted(
      openConfiguredEngine(config, { metrics, log, signal, waiting: (reason) => health.waiting(reason) }),
      signal,
      (late) => late.close(),
    )
    opened.push(() => engine.close())
    opened.push(() => operatorApi.finish())
    const { broker, system, operators } = createBroker(engine, {
      observers: [
        metrics.observer,
        ...operatorApi.observers,
        ...(routes ? [metrics.routingObserver, routes.observer] : []),
        ...(policy ? [metrics.authorizationObserver] : []),
      ],
      limitsOf: frontDoor.limitsOf,
      onLimit: (name, { account, clientId }) => frontDoor.refused(name, account ?? clientId),
      ...(routes ? { routing: routes.routing } : {}),
      ...(policy ? { authorization: policy.authorization } : {}),
    })
    metrics.watchEngine(() => engine.stats())

    const agentAudit = new AgentAudit(audit)
    const agents = config.connectors.a2a.enable
      ? await untilAborted(
          openAgents(config, { system, metrics, log, audit: agentAudit, frontDoor, ownAddresses: () => listeners }),
          signal,
          ({ registry }) => registry.close(),
        )
      : undefined
    opened.push(() => agents?.registry.close())

    const shared = await createSharedListener({
      config,
      broker,
      system,
      agents,
      authenticator: authentication.shared,
      frontDoor,
      entrance,
      requests,
      health,
      metrics,
      log,
    })
    opened.push(() => shared.close())
    await shared.ready()
    health.serving({ health: () => healthOf(engine, agents, frontDoor.admission) })
    const { agentTtlSeconds } = config.connectors.a2a
    operatorApi.serve({
      broker: operators,
      system,
      ...(agents ? { agents: managedAgents(agents, agentAudit, agentTtlSeconds) } : {}),
    })
    entrance.open()
    warnOfOpenDoors(log, config, { app: shared, address: http }, { app: management, address: api })
    warnOfOpenNats(log, config)

    let closing: Promise<void> | undefined
    const close = (): Promise<void> => {
      closing ??= (async () => {
        health.stopping()
        await drain(shared, config.shutdownSeconds * 1000, async () => {
          await agents?.registry.close()
          await operatorApi.finish()
          await engine.close()
        })
        // To the end, so that probes and a last scrape see the shutdown.
        await drain(management, 1_000)
        const parts = [limitsFile, frontDoor, metrics, routes, authentication, policy, tls]
        for (const part of [...parts, connections, operatorConnections]) part?.[Symbol.dispose]()
      })()
      return closing
    }
    return { http, api, broker, close, [Symbol.asyncDispose]: close }
  } catch (error) {
    health.stopping()
    for (const undo of opened.toReversed()) await undo()
    throw error
  }
}

/**
 * A node that does not hear of agents as they come and go is not ready, nor is one that is short of memory; its engine
 * may be well.
 */
async function healthOf(
  engine: HealthyEngine,
  agents: Agents | undefined,
  { limits, use }: AdmissionControl,
): Promise<EngineHealth> {
  const { ok, checks } = await engine.health()
  const { memoryPercent } = limits.process
  const memory = {
    name: 'memory',
    ok: !use.memoryExceeded,
    detail: `${use.memoryExceeded ? 'above' : 'below'} ${memoryPercent} %${use.memoryExceeded ? ': bodies over 64 KiB and new streams are refused' : ''}`,
  }
  const shared = memoryPercent === 0 ? checks : [...checks, memory]
  if (agents === undefined) return { ok, checks: shared }
  const { current, size } = agents.registry
  const detail = current ? `${size} agents` : 'waits for the discovery log'
  return { ok, checks: [...shared, { name: 'registry', ok: current, detail }] }
}
