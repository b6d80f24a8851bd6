import { A2A } from './a2a.ts'
import { CLOUDEVENTS } from './cloudevents.ts'
import { CLUSTERING } from './clustering.ts'
import { DECISIONS } from './decisions.ts'
import { CORS, ORIGINS, PROBES, SERVICE } from './http.ts'
import { JSON_RPC } from './json-rpc.ts'
import { MANAGEMENT } from './management.ts'
import { MCP, SHAPES, TOOLS } from './mcp.ts'
import { REGISTRY } from './registry.ts'
import type { Requirement } from './requirement.ts'

export type { Requirement } from './requirement.ts'

/** Everything that must hold. A full run of the tests fails when no passed test cites one of these. */
export const REQUIREMENTS: readonly Requirement[] = [
  ...SERVICE,
  ...JSON_RPC,
  ...MCP,
  ...TOOLS,
  ...SHAPES,
  ...CORS,
  ...ORIGINS,
  ...PROBES,
  ...DECISIONS,
  ...CLOUDEVENTS,
  ...REGISTRY,
  ...A2A,
  ...CLUSTERING,
  ...MANAGEMENT,
]
