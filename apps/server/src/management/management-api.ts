import { BrokerError } from '@signalbox/broker-core'
import { parseJsonText } from '@signalbox/broker-core/internal'
import { documentedA2aRoutes } from '@signalbox/connector-a2a'
import type { A2aConnector } from '@signalbox/connector-a2a'
import { documentedCeRoutes } from '@signalbox/connector-cloudevents'
import { documentedMcpRoutes } from '@signalbox/connector-mcp'
import type { McpOperations } from '@signalbox/connector-mcp'
import type { Authenticator, ResolveHost } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { resolveBySystem, TextParts } from '@signalbox/http-kit/internal'
import type {
  AgentCallsPort,
  AuditLog,
  DocumentedRoute,
  ManagementServices,
  ToolsPort,
} from '@signalbox/management-api'
import type { ManagementApi } from '@signalbox/management-api/fastify'
import { managementApi } from '@signalbox/management-api/fastify'
import { documentedRegistryRoutes } from '@signalbox/registry'

import type { Config } from '../config/schema.ts'
import { trustedOrigins } from '../config/security.ts'
import type { Origins } from '../config/setting-statuses.ts'
import { maskedConfig, settingStatuses } from '../config/setting-statuses.ts'
import type { Health } from '../health/health.ts'
import { requestFields } from '../http/request-log.ts'
import type { ServerFrontDoor } from '../limits/front-door.ts'
import type { Logger } from '../logging/logger.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { consoleOAuth } from '../security/console-oauth.ts'
import type { SecurityState } from '../security/security-state.ts'
import { VERSION } from '../version.ts'

export interface ManagementParts {
  readonly config: Config
  readonly health: Health
  readonly metrics: Metrics
  readonly log: Logger
  /** @default a separate one */
  readonly frontDoor?: ServerFrontDoor
  /** @default a log that only the management API records in */
  readonly audit?: AuditLog
  /** The sources of the settings. @default a program passed the configuration */
  readonly origins?: Origins | undefined
  /** @default that of the management listener */
  readonly security?: SecurityState
  /** Resolves the host of the identity provider. @default the name servers of the system */
  readonly resolve?: ResolveHost
  /** Undefined while control-plane authentication is off. */
  readonly authenticator?: Authenticator | undefined
}

/** The modules of the console are not needed for a start. */
async function consoleFolder(): Promise<string> {
  const { consolePage } = await import('@signalbox/console')
  return consolePage()
}

/** Returns the REST routes of the connectors, for the OpenAPI document. JSON-RPC endpoints have none. */
async function documentedRoutes({ authentication, connectors, webhooks }: Config): Promise<readonly DocumentedRoute[]> {
  const { a2a, ce, mcp } = connectors
  const routes = await Promise.all([
    a2a.enable ? documentedRegistryRoutes({ inbox: a2a.log === 'auto' }) : [],
    a2a.enable ? documentedA2aRoutes({ native: a2a.native }) : [],
    ce.enable ? documentedCeRoutes({ push: webhooks.enable }) : [],
    mcp.enable ? documentedMcpRoutes({ oauth: authentication.enable && authentication.oauth.enable }) : [],
  ])
  return routes.flat()
}

/** Creates the management API according to the configuration. It exists before the broker does. */
export function createManagementApi(parts: ManagementParts): ManagementApi {
  const {
    config,
    health,
    metrics,
    log,
    audit,
    authenticator,
    frontDoor,
    origins,
    security,
    resolve = resolveBySystem,
  } = parts
  return managementApi({
    authenticator,
    trustedOrigins: trustedOrigins(config.api.trustedOrigins),
    bindHost: config.api.host,
    frontDoor,
    maxBodyBytes: config.maxBodyBytes,
    config: () => maskedConfig(config),
    console: config.console.enable ? { folder: consoleFolder, oauth: consoleOAuth(config, log, resolve) } : undefined,
    traceUrl: config.console.traceUrl === '' ? undefined : (id) => config.console.traceUrl.replaceAll('{trace_id}', id),
    settings: () => settingStatuses({ ...config, limits: frontDoor?.limits ?? config.limits }, origins),
    security: security && (() => security.status()),
    node: () => health.state(),
    metrics,
    streams: () => metrics.openStreams(),
    audit: { ...config.audit, log: audit },
    document: { version: VERSION, routes: () => documentedRoutes(config) },
    settleGraceMs: config.settleGraceMs,
    hooks: {
      failed: (error, request) => log.error({ err: error, ...requestFields(request) }, 'management API failed'),
    },
  })
}

/** The parts of the connectors that operators use. The connectors that are turned off set none. */
export class ConnectorOperations {
  mcp: McpOperations | undefined
  streams: A2aConnector['streams'] | undefined
  calls: A2aConnector['calls'] | undefined
  inboxes: A2aConnector['inboxes']

  /** Returns the parts as services of the management API. */
  services(): Pick<ManagementServices, 'tasks' | 'streams' | 'tools' | 'agentCalls' | 'agentInboxes'> {
    const { calls, inboxes, mcp, streams } = this
    return {
      tools: mcp && toolsOf(mcp),
      tasks: mcp?.tasks,
      streams,
      agentCalls: calls && agentCallsOf(calls),
      agentInboxes: inboxes,
    }
  }
}

function toolsOf(mcp: McpOperations): ToolsPort {
  return {
    list: () => mcp.tools(),
    async call(name, args, context) {
      const outcome = await mcp.callTool(name, args, context).catch((error: unknown) => {
        throw invalidArguments(error) ?? error
      })
      if (outcome === undefined) return undefined
      const { text, isError, structuredContent: content, settlement } = outcome
      const structured: unknown =
        typeof content === 'string' || content instanceof TextParts ? parseJsonText(String(content)) : content
      return { text, isError, structured, settlement }
    },
  }
}

function agentCallsOf(calls: A2aConnector['calls']): AgentCallsPort {
  return {
    async open({ operator, ...call }) {
      try {
        return await calls.open({ ...call, caller: operator })
      } catch (error) {
        if (call.signal.aborted && error === call.signal.reason) return TIMED_OUT
        if (!(error instanceof JsonRpcError)) throw error
        if (error.code === JSON_RPC_CODES.AGENT_NOT_FOUND) return undefined
        return { rpcCode: error.code, message: error.message }
      }
    },
  }
}

/** The client may have disconnected as well; it gets no answer then. */
const TIMED_OUT = { rpcCode: JSON_RPC_CODES.AGENT_TIMEOUT, message: 'agent timeout' }

/** Returns the error for the operator; undefined for another error. */
function invalidArguments(error: unknown): BrokerError | undefined {
  if (!(error instanceof JsonRpcError) || error.code !== JSON_RPC_CODES.INVALID_PARAMS) return undefined
  return new BrokerError('ARGUMENT_INVALID', error.message, {}, { cause: error })
}
