import { HANDSHAKE } from './handshake.ts'
import type { Revision } from './revision.ts'

/** The revision without `title` in the server's name. Its batches are rejected too. */
export const REVISION_2025_03_26: Revision = {
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
