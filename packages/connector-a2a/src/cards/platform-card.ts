import type { JsonObject } from '@signalbox/http-kit'

import type { Platform } from '../options.ts'
import type { CardContext } from './gateway-card.ts'
import { ownSecurity, securityOfBoth, securityV10 } from './security.ts'

/**
 * Returns the platform's own card. It names no agents, because it is public and the list of agents is not.
 * Its address answers every request with an error that says how agents are addressed.
 */
export function platformCard(
  { name, description, version }: Platform,
  { base, bearer, shape }: Pick<CardContext, 'base' | 'bearer' | 'shape'>,
): JsonObject {
  const url = `${base}/a2a`
  const card = {
    name,
    description,
    version,
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: [
      {
        id: 'agents',
        name: 'Registered agents',
        description: `Forwards requests to registered agents. GET ${base}/agents lists them. The base URL of an agent is ${url}/{agent_id}/; its card is at ${url}/{agent_id}/.well-known/agent-card.json.`,
        tags: ['agents', 'gateway', 'registry'],
      },
    ],
  }
  if (shape === '1.0') return { ...card, ...securityV10(ownSecurity(bearer)) }
  const v03 = { url, preferredTransport: 'JSONRPC', protocolVersion: '0.3.0' }
  return { ...card, protocolVersions: ['1.0'], ...v03, ...securityOfBoth(ownSecurity(bearer)) }
}
