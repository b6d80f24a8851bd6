import type { BrokerHandle, Engine } from '@signalbox/broker-core'
import { AgentRequests } from '@signalbox/connector-a2a'
import type { ResolveHost } from '@signalbox/http-kit'
import { openKeyFile } from '@signalbox/http-kit'
import type { AgentRegistry, ListeningAddress, OperatorCredentialsOf } from '@signalbox/registry'
import { AgentAddressPolicy, AgentConnections, openRegistry } from '@signalbox/registry'

import type { Config } from '../config/schema.ts'
import { ServerError } from '../errors.ts'
import type { ServerFrontDoor } from '../limits/front-door.ts'
import type { Logger } from '../logging/logger.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { AgentAudit } from './agent-audit.ts'
import { agentAuthorities } from './agent-authorities.ts'
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
    ...(credentialsKey === undefined ? {} : { credentialsKey }),
    ...(operatorCredentials === undefined ? {} : { operatorCredentials }),
    agentTtlSeconds: a2a.agentTtlSeconds,
    idHoldSeconds: a2a.idHoldSeconds,
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
