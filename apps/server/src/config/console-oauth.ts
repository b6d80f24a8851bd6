import { isSafeForTokens } from '../security/safe-for-tokens.ts'
import type { Config } from './schema.ts'

/** Returns the issuer at which operators sign in to the console. */
export function consoleIssuer({ authentication, console }: Config): string {
  return console.oauth.issuer === '' ? authentication.issuer : console.oauth.issuer
}

/** Returns the problems of the settings with which operators sign in at an identity provider. */
export function consoleOAuthConflicts(config: Config): string[] {
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
