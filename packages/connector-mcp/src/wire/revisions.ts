import { REVISION_2025_03_26 } from './2025-03-26.ts'
import { REVISION_2025_06_18 } from './2025-06-18.ts'
import { REVISION_2025_11_25 } from './2025-11-25.ts'
import type { Revision } from './revision.ts'

/** The revision that is spoken where the client names none, or one that is not known (M1). */
export const LATEST_REVISION: Revision = REVISION_2025_11_25

const REVISIONS: ReadonlyMap<string, Revision> = new Map(
  [REVISION_2025_11_25, REVISION_2025_06_18, REVISION_2025_03_26].map((revision) => [revision.version, revision]),
)

/** Every `MCP-Protocol-Version` that is understood, newest first. */
export const PROTOCOL_VERSIONS: readonly string[] = [...REVISIONS.keys()]

/** The revision with this version, if it is one of ours. */
export function findRevision(version: string): Revision | undefined {
  return REVISIONS.get(version)
}

/** What `initialize` agrees on: the client's version where it is ours, else the latest (M1). */
export function negotiate(version: string): Revision {
  return REVISIONS.get(version) ?? LATEST_REVISION
}
