import { connect03 } from './client-0.3.ts'
import { connect10, connectLegacy, connectRest } from './client-1.3.ts'
import type { OfficialClient } from './client.ts'

/**
 * The clients: of @a2a-js/sdk 1.3, which speaks A2A 1.0; the same over HTTP+JSON; the same in its mode for agents of A2A 0.3; of @a2a-js/sdk 0.3. Each
 * is given a URL and nothing else.
 */
export const CONNECT = {
  '1.0': connect10,
  rest: connectRest,
  legacy: connectLegacy,
  '0.3': connect03,
} satisfies Record<string, (url: string) => Promise<OfficialClient>>

export type ClientName = keyof typeof CONNECT
