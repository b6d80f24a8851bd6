import type { TrustedOrigins } from '@signalbox/http-kit'

import { resourceOf } from '../mcp/options.ts'
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

/** Returns the issuer at which operators sign in to the console. */
export function consoleIssuer({ authentication, console }: Config): string {
  return console.oauth.issuer === '' ? authentication.issuer : console.oauth.issuer
}

/** Returns the problems of the settings with which operators sign in at an identity provider. */
function consoleOAuthConflicts(config: Config): string[] {
  const { api, authentication, console } = config
  const { clientId, issuer, resource } = console.oauth
  if (clientId === '') {
    const given = issuer === '' ? 'resource' : 'issuer'
    if (issuer === '' && resource === '') return []
    return [
      `console.oauth.clientId: console.oauth.${given} is set and there is no client id; allowed: the id of the public client at the identity provider`,
    ]
  }
  const problems: string[] = []
  if (!console.enable) problems.push('console.oauth.clientId: the console is off; allowed: only with console.enable')
  if (!api.authentication.enable) {
    problems.push(
      'console.oauth.clientId: the management listener requires no token; allowed: only with api.authentication.enable',
    )
  }
  const from = consoleIssuer(config)
  if (from === '') {
    problems.push(
      'console.oauth.issuer: there is a client id and no issuer; allowed: the issuer URL of the identity provider, here or in authentication.issuer',
    )
  } else if (!isSafeForTokens(from)) {
    const setting = issuer === '' ? 'authentication.issuer' : 'console.oauth.issuer'
    problems.push(
      `console.oauth.issuer: ${setting} is ${JSON.stringify(from)}; allowed: an https URL, or http on loopback`,
    )
  }
  const { audience } = authentication
  if (resource !== '' && audience.length > 0 && !audience.includes(resource)) {
    problems.push(
      `console.oauth.resource: it is ${JSON.stringify(resource)}, and authentication.audience does not contain it, so the tokens would be refused; allowed: one of ${audience.join(', ')}`,
    )
  }
  return problems
}

/** Converts a list setting for the origin policies. */
export function trustedOrigins(setting: readonly string[]): TrustedOrigins {
  if (setting.includes('*')) return '*'
  return setting.includes('auto') ? 'auto' : setting
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Returns true for a URL to which tokens may be sent: https, or http on this machine, without credentials. */
export function isSafeForTokens(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || url.username !== '' || url.password !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.has(url.hostname))
}
