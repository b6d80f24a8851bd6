import type { IncomingMessage } from 'node:http'

import type { Authenticator, ConnectorOptions } from '@signalbox/http-kit'

import type { AuditLog, AuditLogOptions } from './audit/audit-log.ts'
import type { MonitorsOptions } from './monitor/monitors.ts'
import type { DocumentInfo } from './openapi/document.ts'
import type { DocumentedRoute } from './openapi/documented-route.ts'
import type { MetricsPort, NodeStatus } from './ports.ts'

/** Called on the path of requests: be quick. What they throw is dropped. */
export interface ManagementHooks {
  /** Something failed that no operator is told about. For the log. */
  failed?(error: unknown, request?: IncomingMessage): void
}

/** What is audited, and where to. */
export interface ManagementAuditOptions extends AuditLogOptions {
  /** Whether every message is audited, beside what always is. @default false */
  readonly messages?: boolean
  /** The log, where it was made before because others record in it too. @default one of these options */
  readonly log?: AuditLog
}

export interface ManagementOptions extends Omit<ConnectorOptions, 'authenticator' | 'drainMs' | 'runHostHooks'> {
  /** Verifies callers. @default none: control-plane authentication is off, everybody acts as Admin (S3) */
  readonly authenticator?: Authenticator | undefined
  /** The effective configuration for `/api/config`, secrets masked. @default {} */
  readonly config?: () => object
  /** How this node is, for `/api/snapshot`. */
  readonly node: () => Promise<NodeStatus>
  /** For `/metrics`. */
  readonly metrics: MetricsPort
  /** Open streams of server-sent events, by connector. @default none */
  readonly streams?: () => Readonly<Record<string, number>>
  /** What is audited, and for how long. @default the defaults of {@link ManagementAuditOptions} */
  readonly audit?: ManagementAuditOptions
  /** The most clients, and channels with errors, of which statistics are kept. @default 10000 of each */
  readonly statistics?: { readonly maxClients?: number; readonly maxChannels?: number }
  /** Limits of live monitors. @default the defaults of {@link MonitorsOptions} */
  readonly monitors?: MonitorsOptions
  /** What the OpenAPI document says beside the routes of this listener. */
  readonly document: DocumentInfo & { readonly routes?: () => readonly DocumentedRoute[] }
  /** Milliseconds that answers with messages have to be taken when the API closes; 0 does not wait. @default 1000 */
  readonly drainMs?: number
  /** Milliseconds between the answer to a destructive receive and its settlement; 0 settles at once (M14). @default 250 */
  readonly settleGraceMs?: number
  /**
   * The longest that a command or query is waited for, in milliseconds, whatever it asks for: less than what the listener
   * gives a response. @default 170000
   */
  readonly maxWaitMs?: number
  /** Where logs hear of failures. @default none */
  readonly hooks?: ManagementHooks
}
