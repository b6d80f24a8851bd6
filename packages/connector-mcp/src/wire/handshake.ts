import { JSON_RPC_CODES } from '@signalbox/http-kit'

import type { Revision } from './revision.ts'

/** The parts that all revisions with `initialize` share. */
export const HANDSHAKE: Omit<Revision, 'version' | 'implementation' | 'requestMethods'> = {
  stateless: false,
  methods: new Set(['initialize', 'ping', 'tools/list', 'tools/call']),
  invalidArguments: 'error',
  closingCancels: false,
  statusOf: (code) => (code === JSON_RPC_CODES.PARSE_ERROR || code === JSON_RPC_CODES.INVALID_REQUEST ? 400 : 200),
  result: (members) => `{${members}}`,
  cacheHints: () => '',
}
