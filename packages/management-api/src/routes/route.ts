import { compileQuery } from '@signalbox/http-kit'
import type { Role } from '@signalbox/http-kit'
import type { Static, TObject, TSchema } from 'typebox'

import type { AuditLog } from '../audit/audit-log.ts'
import { invalidParameters } from '../errors.ts'
import type { Monitors } from '../monitor/monitors.ts'
import type { ManagementServices, NodeStatus } from '../ports.ts'
import type { Statistics } from '../statistics/statistics.ts'

/** What all requests share. */
export interface ManagementEnvironment {
  readonly statistics: Statistics
  readonly audit: AuditLog
  readonly monitors: Monitors
  /** The effective configuration, secrets masked. */
  config(): object
  node(): Promise<NodeStatus>
  /** Open streams of server-sent events, by connector. */
  streams(): Readonly<Record<string, number>>
}

export interface ManagementRouteCall {
  readonly services: ManagementServices
  readonly environment: ManagementEnvironment
}

interface RouteSource<Query extends TObject, Data extends TSchema> {
  /** The first is its name; the others are the same under another path. */
  readonly paths: readonly [string, ...string[]]
  readonly summary: string
  readonly query: Query
  readonly data: Data
  run(query: Static<Query>, call: ManagementRouteCall): Static<Data> | Promise<Static<Data>>
}

/** A GET route of the management API, answered in the envelope. */
export interface ManagementRoute {
  readonly paths: readonly [string, ...string[]]
  readonly summary: string
  readonly role: Role
  readonly query: TObject
  readonly data: TSchema
  /** Checks the query, and returns what is left to do. @throws ManagementError PARAMETER_INVALID */
  prepare(query: string): (call: ManagementRouteCall) => Promise<unknown>
}

/** Makes a route of its parts: one schema is the type, the check and the documentation of its query. */
export function defineManagementRoute<Query extends TObject, Data extends TSchema>(
  source: RouteSource<Query, Data>,
): ManagementRoute {
  const { paths, summary, query, data } = source
  const read = compileQuery(query, invalidParameters)
  return {
    paths,
    summary,
    role: 'ReadOnly',
    query,
    data,
    prepare(text) {
      const values = read(text)
      return async (call) => source.run(values, call)
    },
  }
}

export const STRICT = { additionalProperties: false } as const
