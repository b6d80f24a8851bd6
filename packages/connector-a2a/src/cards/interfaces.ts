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
 * Returns the interfaces of A2A 1.0 at which the gateway serves an agent, the preferred one first: two for each `tenant`.
 * @param native `false` without official calls: the dialect has no HTTP+JSON binding
 */
export function interfacesV10(
  place: InterfacePlace,
  tenants: readonly string[],
  native: boolean,
): readonly JsonObject[] {
  const url = agentAddress(place)
  const shapes = tenants.length === 0 ? [{}] : tenants.map((tenant) => ({ tenant }))
  return shapes.flatMap((tenant) => {
    const shared = { ...tenant, protocolVersion: '1.0' }
    return [
      { url, protocolBinding: 'JSONRPC', ...shared },
      ...(native ? [{ url, protocolBinding: 'HTTP+JSON', ...shared }] : []),
    ]
  })
}

/**
 * Returns the interface of A2A 0.3. Requests of A2A 0.3 have no `tenant`.
 * @param native `false` without the path of official calls: the dialect has the method names of A2A 0.3
 */
export function interfaceV03(place: InterfacePlace, native: boolean): JsonObject {
  return { url: `${agentAddress(place)}${native ? V03_PATH : ''}`, protocolBinding: 'JSONRPC', protocolVersion: '0.3' }
}

/**
 * Returns each `tenant` of an agent, in the order of its card: those of the interfaces at the agent's registered `url`, or
 * else at the url of the first interface, over JSON-RPC or over HTTP+JSON if there is no other.
 */
export function tenantsOf({ supportedInterfaces, url }: JsonObject): readonly string[] {
  if (!Array.isArray(supportedInterfaces)) return []
  const all = supportedInterfaces.filter((one): one is JsonObject => isJsonObject(one))
  const over = (binding: string): readonly JsonObject[] => all.filter((one) => one['protocolBinding'] === binding)
  const offered = over('JSONRPC').length > 0 ? over('JSONRPC') : over('HTTP+JSON')
  const at = offered.some((one) => one['url'] === url) ? url : offered[0]?.['url']
  const tenants = offered.filter((one) => one['url'] === at).map((one) => one['tenant'])
  return [...new Set(tenants.filter((tenant): tenant is string => typeof tenant === 'string' && tenant !== ''))]
}
