import { REVISION_2025_03_26 } from './2025-03-26.ts'
import { REVISION_2025_06_18 } from './2025-06-18.ts'
import { REVISION_2025_11_25 } from './2025-11-25.ts'
import type { Revision } from './revision.ts'

/** The revision for clients that name none, or an unsupported one. */
export const LATEST_REVISION: Revision = REVISION_2025_11_25

const REVISIONS: ReadonlyMap<string, Revision> = new Map(
  [REVISION_2025_11_25, REVISION_2025_06_18, REVISION_2025_03_26].map((revision) => [revision.version, revision]),
)

/** The supported values of `MCP-Protocol-Version`, newest first. */
export const PROTOCOL_VERSIONS: readonly string[] = [...REVISIONS.keys()]

/** Returns the revision with this version, if it is supported. */
export function findRevision(version: string): Revision | undefined {
  return REVISIONS.get(version)
}

/** Returns the revision that `initialize` agrees on: the client's if it is supported, otherwise the latest. */
export function negotiate(version: string): Revision {
  return REVISIONS.get(version) ?? LATEST_REVISION
}
