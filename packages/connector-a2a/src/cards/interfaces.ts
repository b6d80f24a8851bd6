import { isJsonObject } from '@signalbox/http-kit'
import type { JsonObject } from '@signalbox/http-kit'

/** The path of the A2A 0.3 interface, below an agent's own path. */
const V03_PATH = '/v0.3'

/** The base URL, and the agent's place below it. */
export interface InterfacePlace {
  /** The gateway's URL as clients see it, without a slash at the end. */
  readonly base: string
  readonly agentId: string
}

/** Returns the URL at which the gateway serves an agent. It has no query: clients append to it. */
function agentAddress({ base, agentId }: InterfacePlace): string {
  return `${base}/a2a/${agentId}`
}

/**
 * Returns the interfaces of A2A 1.0 at which the gateway serves an agent, the preferred one first.
 * @param native `false` without official calls: the dialect has no HTTP+JSON binding
 */
export function interfacesV10(
  place: InterfacePlace,
  tenant: string | undefined,
  native: boolean,
): readonly JsonObject[] {
  const url = agentAddress(place)
  const shared = { ...(tenant === undefined ? {} : { tenant }), protocolVersion: '1.0' }
  return [
    { url, protocolBinding: 'JSONRPC', ...shared },
    ...(native ? [{ url, protocolBinding: 'HTTP+JSON', ...shared }] : []),
  ]
}

/**
 * Returns the interface of A2A 0.3. Requests of A2A 0.3 have no `tenant`.
 * @param native `false` without the path of official calls: the dialect has the method names of A2A 0.3
 */
export function interfaceV03(place: InterfacePlace, native: boolean): JsonObject {
  return { url: `${agentAddress(place)}${native ? V03_PATH : ''}`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' }
}

/**
 * Returns the `tenant` that clients must name in requests to this agent: that of the interface at the
 * agent's registered `url`, or else of its first JSON-RPC interface.
 */
export function tenantOf(card: JsonObject): string | undefined {
  const { supportedInterfaces, url } = card
  if (!Array.isArray(supportedInterfaces)) return undefined
  const offered = supportedInterfaces.filter(
    (one): one is JsonObject => isJsonObject(one) && one['protocolBinding'] === 'JSONRPC',
  )
  const tenant = (offered.find((one) => one['url'] === url) ?? offered[0])?.['tenant']
  return typeof tenant === 'string' && tenant !== '' ? tenant : undefined
}
