import { resourceOf } from '../security/oauth.ts'
import { consoleOAuthConflicts } from './console-oauth.ts'
import type { Config } from './schema.ts'

const KEY_SOURCES = ['jwksUrl', 'jwksFile', 'keyFile', 'secret', 'secretFile'] as const

/** Returns the name of the setting below `authentication` that gives the keys; undefined if none is set. */
export function keySourceOf(authentication: Config['authentication']): (typeof KEY_SOURCES)[number] | undefined {
  return KEY_SOURCES.find((name) => authentication[name] !== '')
}

/**
 * Returns the problems of settings of authentication, authorization and TLS that exclude or require
 * each other.
 */
export function securityConflicts(config: Config): string[] {
  const { authentication, api, authorization, security } = config
  const problems = authentication.oauth.enable ? oauthConflicts(config) : []
  problems.push(...consoleOAuthConflicts(config))
  if (authentication.enable || api.authentication.enable) {
    const given = KEY_SOURCES.filter((name) => authentication[name] !== '')
    const allowed = `allowed: exactly one of ${KEY_SOURCES.map((name) => `authentication.${name}`).join(', ')}`
    if (given.length === 0) problems.push(`authentication: it is on and has no keys; ${allowed}`)
    if (given.length > 1) problems.push(`authentication: ${given.join(' and ')} are both set; ${allowed}`)
  }
  if (authorization.enable && authorization.policyFile === '') {
    problems.push('authorization.policyFile: authorization is on and has no policy; allowed: a path')
  }
  if (config.webhooks.enable && config.webhooks.keyFile === '') {
    problems.push(
      'webhooks.keyFile: webhooks are on and have no key; allowed: a path, which is created if it does not exist',
    )
  }
  problems.push(...tlsConflicts('security', security), ...tlsConflicts('api.security', api.security))
  return problems
}

function tlsConflicts(section: string, { certFile, keyFile, caFile }: Config['security']): string[] {
  if ((certFile === '') !== (keyFile === '')) {
    const missing = certFile === '' ? 'certFile' : 'keyFile'
    return [`${section}.${missing}: it is missing; allowed: a certificate and its key, or neither`]
  }
  if (caFile === '' || certFile !== '') return []
  return [`${section}.caFile: clients can be asked for certificates only over TLS; allowed: with certFile and keyFile`]
}

/** Returns the problems of settings that the OAuth mode needs. `publicUrl` itself is checked with the other URLs. */
function oauthConflicts({ authentication, publicUrl }: Config): string[] {
  const { audience, enable, issuer, oauth } = authentication
  const problems: string[] = []
  if (!enable) problems.push('authentication.oauth.enable: authentication is off; allowed: with authentication.enable')
  if (issuer === '') {
    problems.push('authentication.issuer: OAuth is on and has no issuer; allowed: the claim iss of the tokens')
  } else if (oauth.authorizationServers.length === 0 && !/^https?:\/\/[^\s"]+$/.test(issuer)) {
    problems.push(
      `authentication.oauth.authorizationServers: OAuth is on and has no authorization server, and authentication.issuer is ${JSON.stringify(issuer)}, which is not a URL; allowed: a list of URLs`,
    )
  }
  if (publicUrl === '') {
    problems.push(
      'publicUrl: OAuth is on and has no public URL; allowed: the URL of the server for clients, such as https://broker.example.com',
    )
    return problems
  }
  const resource = resourceIn(publicUrl)
  if (resource !== undefined && !audience.includes(resource)) {
    problems.push(
      `authentication.audience: OAuth is on and it does not contain ${JSON.stringify(resource)}, which tokens for /mcp are issued for; allowed: a list with it`,
    )
  }
  return problems
}

function resourceIn(publicUrl: string): string | undefined {
  try {
    return resourceOf(publicUrl)
  } catch {
    return undefined
  }
}
