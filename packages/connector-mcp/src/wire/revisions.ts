import { REVISION_2025_03_26 } from './2025-03-26.ts'
import { REVISION_2025_06_18 } from './2025-06-18.ts'
import { REVISION_2025_11_25 } from './2025-11-25.ts'
import { REVISION_2026_07_28 } from './2026-07-28.ts'
import type { Revision } from './revision.ts'

/** The revision for clients that name none. */
export const DEFAULT_REVISION: Revision = REVISION_2025_11_25

/** The revision whose requests are independent. */
export const STATELESS_REVISION: Revision = REVISION_2026_07_28

const NEGOTIATED: ReadonlyMap<string, Revision> = new Map(
  [REVISION_2025_11_25, REVISION_2025_06_18, REVISION_2025_03_26].map((revision) => [revision.version, revision]),
)

/** The versions that `initialize` negotiates, newest first. */
export const PROTOCOL_VERSIONS: readonly string[] = [...NEGOTIATED.keys()]

/** The supported values of `MCP-Protocol-Version`, newest first: {@link PROTOCOL_VERSIONS} and 2026-07-28. */
export const SUPPORTED_VERSIONS: readonly string[] = [STATELESS_REVISION.version, ...PROTOCOL_VERSIONS]

/**
 * The methods of all revisions, for metrics. Others are reported as `unknown`, so that callers cannot create label
 * values.
 */
export const SERVED_METHODS: ReadonlySet<string> = new Set([...DEFAULT_REVISION.methods, ...STATELESS_REVISION.methods])

/** Returns the revision with this version, if it is supported. */
export function findRevision(version: string): Revision | undefined {
  return version === STATELESS_REVISION.version ? STATELESS_REVISION : NEGOTIATED.get(version)
}

/** Returns the revision that `initialize` agrees on: the client's if it has a handshake, otherwise 2025-11-25. */
export function negotiate(version: string): Revision {
  return NEGOTIATED.get(version) ?? DEFAULT_REVISION
}
