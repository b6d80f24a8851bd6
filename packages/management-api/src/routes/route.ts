import { compileQuery } from '@signalbox/http-kit'
import type { Static, TObject, TSchema } from 'typebox'

import type { Operator } from '../access/operator.ts'
import type { AuditLog } from '../audit/audit-log.ts'
import type { ChannelIndex } from '../channels/channel-index.ts'
import type { Redrives } from '../dead-letters/redrives.ts'
import { invalidParameters } from '../errors.ts'
import type { History } from '../history/history.ts'
import type { Monitors } from '../monitor/monitors.ts'
import type { ManagementServices, NodeStatus, SecurityStatus, SettingStatus } from '../ports.ts'
import type { ReadingPath } from '../route-table.ts'
import type { OpenRequests } from '../requests/open-requests.ts'
import type { Attachments } from '../statistics/attachments.ts'
import type { Statistics } from '../statistics/statistics.ts'
import type { MessageTrail } from '../trace/message-trail.ts'

/** The state that all requests share. */
export interface ManagementEnvironment {
  readonly statistics: Statistics
  readonly attachments: Attachments
  readonly audit: AuditLog
  readonly monitors: Monitors
  readonly redrives: Redrives
  readonly requests: OpenRequests
  readonly trail: MessageTrail
  readonly history: History
  readonly channelIndex: ChannelIndex
  /** Returns the effective configuration, with secrets masked. */
  config(): object
  /** Returns every setting with the source of its value. */
  settings(): readonly SettingStatus[]
  security(): SecurityStatus
  node(): Promise<NodeStatus>
  /** Returns the number of open streams of server-sent events, by connector. */
  streams(): Readonly<Record<string, number>>
}

export interface ManagementRouteCall {
  readonly operator: Operator
  readonly services: ManagementServices
  readonly environment: ManagementEnvironment
}

interface RouteSource<Query extends TObject, Data extends TSchema> {
  /** The first of its paths. */
  readonly path: ReadingPath
  readonly summary: string
  readonly query: Query
  readonly data: Data
  /** `true` if the answer has bodies of messages, so that it can be long. @default false */
  readonly hasBodies?: boolean
  run(query: Static<Query>, call: ManagementRouteCall): Static<Data> | Promise<Static<Data>>
}

/** A GET route of the management API, answered in the envelope. */
export interface ManagementRoute {
  readonly path: ReadingPath
  readonly summary: string
  readonly query: TObject
  readonly data: TSchema
  readonly hasBodies: boolean
  /**
   * Validates the query, and returns the function that runs the route.
   * @throws ManagementError PARAMETER_INVALID
   */
  prepare(query: string): (call: ManagementRouteCall) => Promise<unknown>
}

/** Defines a route. One schema is the type, the validation and the documentation of its query. */
export function defineManagementRoute<Query extends TObject, Data extends TSchema>(
  source: RouteSource<Query, Data>,
): ManagementRoute {
  const { path, summary, query, data, hasBodies = false } = source
  const read = compileQuery(query, invalidParameters)
  return {
    path,
    summary,
    query,
    data,
    hasBodies,
    prepare(text) {
      const values = read(text)
      return async (call) => source.run(values, call)
    },
  }
}

export const STRICT = { additionalProperties: false } as const
