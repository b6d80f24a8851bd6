import { REVISION_2025_03_26 } from './2025-03-26.ts'
import { HANDSHAKE } from './handshake.ts'
import type { Revision } from './revision.ts'

/** The revision that adds `title`. */
export const REVISION_2025_06_18: Revision = {
  ...HANDSHAKE,
  version: '2025-06-18',
  implementation: ({ name, version, title }) => ({ name, version, ...(title === undefined ? {} : { title }) }),
  requestMethods: REVISION_2025_03_26.requestMethods,
}
