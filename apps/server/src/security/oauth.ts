import type { McpOAuthOptions } from '@signalbox/connector-mcp'
import { readPublicUrl } from '@signalbox/http-kit'

import type { Config } from '../config/schema.ts'

/** Returns the options of `/mcp` as a protected resource of OAuth; undefined if the mode is off. */
export function oauthOptions({ authentication, publicUrl }: Config): McpOAuthOptions | undefined {
  const { issuer, oauth } = authentication
  if (!oauth.enable) return undefined
  const { authorizationServers, scopePrefix } = oauth
  return {
    resource: resourceOf(publicUrl),
    authorizationServers: authorizationServers.length > 0 ? authorizationServers : [issuer],
    scopePrefix,
  }
}

/**
 * Returns the identifier of `/mcp` at authorization servers. It never depends on a request.
 * @throws RangeError for an invalid public URL
 */
export function resourceOf(publicUrl: string): string {
  return `${readPublicUrl(publicUrl)}/mcp`
}
