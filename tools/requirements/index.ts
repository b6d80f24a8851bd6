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

/** Every requirement. A full run of the tests fails if no passed test cites one of them. */
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
