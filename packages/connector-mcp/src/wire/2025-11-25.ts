import { REVISION_2025_06_18 } from './2025-06-18.ts'
import { HANDSHAKE } from './handshake.ts'
import type { Revision } from './revision.ts'

/** The revision that adds `description` and `websiteUrl` to the server's name, and the methods of tasks. */
export const REVISION_2025_11_25: Revision = {
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
