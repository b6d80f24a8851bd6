import { JSON_RPC_CODES } from '@signalbox/http-kit'

import { REVISION_2026_07_28 } from './2026-07-28.ts'
import type { Revision } from './revision.ts'

/** The parts that all revisions with `initialize` share. */
const HANDSHAKE: Omit<Revision, 'version' | 'implementation' | 'requestMethods'> = {
  stateless: false,
  methods: new Set(['initialize', 'ping', 'tools/list', 'tools/call']),
  invalidArguments: 'error',
  closingCancels: false,
  statusOf: (code) => (code === JSON_RPC_CODES.PARSE_ERROR || code === JSON_RPC_CODES.INVALID_REQUEST ? 400 : 200),
  result: (members) => `{${members}}`,
  cacheHints: () => '',
}

/** The revision without `title` in the server's name. Its batches are rejected too. */
const REVISION_2025_03_26: Revision = {
  ...HANDSHAKE,
  version: '2025-03-26',
  implementation: ({ name, version }) => ({ name, version }),
  requestMethods: new Set([
    'initialize',
    'ping',
    'completion/complete',
    'logging/setLevel',
    'prompts/get',
    'prompts/list',
    'resources/list',
    'resources/read',
    'resources/subscribe',
    'resources/templates/list',
    'resources/unsubscribe',
    'tools/call',
    'tools/list',
  ]),
}

/** The revision that adds `title`. */
const REVISION_2025_06_18: Revision = {
  ...HANDSHAKE,
  version: '2025-06-18',
  implementation: ({ name, version, title }) => ({ name, version, title }),
  requestMethods: REVISION_2025_03_26.requestMethods,
}

/** The revision that adds `description` and `websiteUrl` to the server's name, and the methods of tasks. */
const REVISION_2025_11_25: Revision = {
  ...HANDSHAKE,
  version: '2025-11-25',
  implementation: (info) => ({ ...info }),
  requestMethods: new Set([
    ...REVISION_2025_06_18.requestMethods,
    'tasks/cancel',
    'tasks/get',
    'tasks/list',
    'tasks/result',
  ]),
}

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
