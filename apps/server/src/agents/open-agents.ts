import { X509Certificate } from 'node:crypto'
import { getCACertificates } from 'node:tls'

import type { BrokerHandle, Engine } from '@signalbox/broker-core'
import { readSmallFileSync } from '@signalbox/broker-core/internal'
import { AgentRequests } from '@signalbox/connector-a2a'
import type { ResolveHost } from '@signalbox/http-kit'
import { openKeyFile } from '@signalbox/http-kit/internal'
import type { AgentInstanceStatus, AgentsPort, AuditLog } from '@signalbox/management-api'
import type {
  AgentCard,
  AgentRegistry,
  ListeningAddress,
  OperationDetail,
  OperatorCredentialsOf,
  RegistryOperation,
} from '@signalbox/registry'
import {
  AgentAddressPolicy,
  AgentConnections,
  agentInstances,
  agentOptions,
  openRegistry,
  RegistryError,
} from '@signalbox/registry'

import type { Config } from '../config/schema.ts'
import { ServerError } from '../errors.ts'
import type { ServerFrontDoor } from '../limits/front-door.ts'
import type { Logger } from '../logging/logger.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { AgentMetrics } from './agent-metrics.ts'

/** The parts that the listeners need to serve agents. */
export interface Agents {
  /** The handle for reserved channels. */
  readonly system: BrokerHandle
  readonly registry: AgentRegistry
  readonly requests: AgentRequests
  /** The allowed addresses of agents (R8). */
  readonly addressPolicy: AgentAddressPolicy
  readonly metrics: AgentMetrics
}

export interface AgentParts {
  readonly system: BrokerHandle
  readonly engine: Pick<Engine, 'capabilities'>
  readonly metrics: Metrics
  readonly log: Logger
  readonly audit: AgentAudit
  readonly frontDoor: Pick<ServerFrontDoor, 'maxAgentsOf' | 'refused'>
  readonly resolve: ResolveHost
  /** The operator's credentials for agents. */
  readonly operatorCredentials?: OperatorCredentialsOf | undefined
  /** The listeners of this server that are open already. */
  readonly ownAddresses: () => readonly ListeningAddress[]
}

/**
 * Opens the agent registry. Resolves when it knows every registered agent. The caller must close
 * it.
 * @throws ServerError START_FAILED for a key file that cannot be used
 */
export async function openAgents(
  { connectors: { a2a }, webhooks: { keyFile } }: Config,
  { operatorCredentials, system, engine, metrics, log, audit, frontDoor, resolve, ownAddresses }: AgentParts,
): Promise<Agents> {
  const agentMetrics = metrics.forAgents()
  const addressPolicy = new AgentAddressPolicy({
    allow: a2a.agentUrlAllow,
    deny: a2a.agentUrlDeny,
    ownAddresses,
    resolve,
  })
  const credentialsKey = keyFile === '' ? undefined : await keyIn(keyFile)
  const registry = await openRegistry(system, {
    connections: new AgentConnections({ ...outboundOf(a2a), tlsSkipVerify: a2a.agentTlsSkipVerify, addressPolicy }),
    credentialsKey,
    operatorCredentials,
    agentTtlSeconds: a2a.agentTtlSeconds,
    idHoldSeconds: a2a.idHoldSeconds,
    parkSeconds: a2a.parkSeconds,
    log: a2a.log,
    maxAgents: a2a.maxAgents,
    maxInstances: a2a.maxInstances,
    maxAgentsOf: frontDoor.maxAgentsOf,
    addressPolicy,
    // The start waits for a remote engine too; a local store is available at once.
    waitForEngine: engine.capabilities.remoteStorage,
    hooks: {
      operation(op, status, detail) {
        agentMetrics.registryOperation(op, status)
        audit.operation(op, status, detail)
        if (op === 'park' && status === 'success') {
          log.info({ agentId: detail.agentId }, 'agent parked without a heartbeat')
        }
        if (op === 'expire' && status === 'success')
          log.info(
            { agentId: detail.agentId, instanceId: detail.instanceId },
            detail.instanceId === undefined
              ? 'agent expired without a heartbeat'
              : 'agent instance expired without a heartbeat',
          )
      },
      limited: ({ account }) => frontDoor.refused('caller_agents', account),
      failed: (error) => log.error({ err: error }, 'agent registry failed'),
    },
  })
  registry.onChange(({ kind, agentId }) => {
    if (kind === 'removed') agentMetrics.forget(agentId)
  })
  const requests = new AgentRequests(system, {
    defaultTimeoutMs: a2a.defaultTimeoutSeconds * 1000,
    maxTimeoutMs: a2a.maxTimeoutSeconds * 1000,
  })
  return { system, registry, requests, addressPolicy, metrics: agentMetrics }
}

/** Returns the authorities and the proxy of all calls to agents. */
function outboundOf({ agentCaFile, agentProxyUrl }: Config['connectors']['a2a']): {
  readonly ca?: ReturnType<typeof agentAuthorities>
  readonly proxyUrl?: string
} {
  return {
    ...(agentCaFile === '' ? {} : { ca: agentAuthorities(agentCaFile) }),
    ...(agentProxyUrl === '' ? {} : { proxyUrl: agentProxyUrl }),
  }
}

async function keyIn(file: string): Promise<Uint8Array> {
  try {
    return await openKeyFile(file)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ServerError('START_FAILED', [`webhooks.keyFile: ${reason}`], { cause: error })
  }
}

/**
 * Returns the certificate authorities for agents' certificates: the authorities in the file and the
 * well-known ones.
 * @throws ServerError START_FAILED if the file cannot be read, or contains no certificate
 */
export function agentAuthorities(file: string): readonly string[] {
  try {
    const { text: pem } = readSmallFileSync(file)
    // Fails at the start instead of at the first call of an agent.
    void new X509Certificate(pem)
    return [...getCACertificates('default'), pem]
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'no certificate'
    throw new ServerError(
      'START_FAILED',
      [
        `connectors.a2a.agentCaFile: ${file} is not a PEM file with certificates (${reason}); set the path of one, or leave it empty`,
      ],
      {
        cause: error,
      },
    )
  }
}

/**
 * Audits registered and removed agents, and refusals of the registry. Heartbeats change nothing and
 * are not audited.
 */
export class AgentAudit {
  readonly #log: Pick<AuditLog, 'record'>
  readonly #byOperators = new Set<string>()

  constructor(log: Pick<AuditLog, 'record'>) {
    this.#log = log
  }

  operation(op: RegistryOperation, status: 'success' | 'error', detail: OperationDetail): void {
    const { agentId: agent, instanceId, clientId: client = '', address, code } = detail
    const denied = code === 'AGENT_OWNED'
    if (op === 'heartbeat' && !denied) return
    if (op === 'deregister' && agent !== undefined && this.#byOperators.has(agent)) return
    this.#log.record({
      client,
      action: `${op}_agent`,
      outcome: denied ? 'denied' : status === 'success' ? 'success' : 'failure',
      address,
      agent,
      code,
      detail: instanceId === undefined ? undefined : `instance ${instanceId}`,
    })
  }

  /** Runs a call of a management action without an entry: the action's own entry records more. */
  async byOperator<Result>(agentId: string, call: () => Promise<Result>): Promise<Result> {
    this.#byOperators.add(agentId)
    try {
      return await call()
    } finally {
      this.#byOperators.delete(agentId)
    }
  }
}

/**
 * Returns the registered agents as the management API lists and removes them.
 * @param ttlSeconds The time without a heartbeat after which an agent expires; 0 means never
 */
export function managedAgents({ registry, metrics }: Agents, audit: AgentAudit, ttlSeconds: number): AgentsPort {
  return {
    list() {
      const inFlight = metrics.inFlight()
      return registry.list().map((card) => {
        const { agent_id, name, version = '', url = '', registered_by } = card
        const lastSeen = Date.parse(card.last_seen)
        const probe = registry.probeOf(agent_id)
        const { durable, offline, pull } = agentOptions(card)
        return {
          agent_id,
          name,
          version,
          url,
          registered_by,
          registered_at: Date.parse(card.registered_at),
          last_seen: lastSeen,
          expires_at: expiryOf(lastSeen, ttlSeconds),
          in_flight: inFlight.get(agent_id) ?? 0,
          offline: card['offline'] === true,
          durable,
          inbox: pull ? ('pull' as const) : offline === 'queue' ? ('offline' as const) : undefined,
          probe: probe && { at: probe.atMs, error: probe.error },
          instances: instancesOf(card, metrics.inFlightByInstance(agent_id), ttlSeconds),
        }
      })
    },
    calls: () => metrics.totals(),
    card: (agentId) => registry.get(agentId),
    deregister: (agentId, { clientId }, instanceId) =>
      audit.byOperator(agentId, async () => {
        try {
          await registry.deregister(agentId, { clientId, admin: true }, { instanceId })
          return true
        } catch (error) {
          if (error instanceof RegistryError && error.status === 404) return false
          throw error
        }
      }),
  }
}

function expiryOf(lastSeen: number, ttlSeconds: number): number | null {
  return ttlSeconds === 0 ? null : lastSeen + ttlSeconds * 1000
}

function instancesOf(
  card: AgentCard,
  inFlight: ReadonlyMap<string, number>,
  ttlSeconds: number,
): readonly AgentInstanceStatus[] {
  return agentInstances(card).map(({ instance_id, url, registered_at, last_seen }) => ({
    instance_id,
    url,
    registered_at: Date.parse(registered_at),
    last_seen: Date.parse(last_seen),
    expires_at: expiryOf(Date.parse(last_seen), ttlSeconds),
    in_flight: inFlight.get(instance_id) ?? 0,
  }))
}
