import type { Config } from './schema.ts'

const KEY_SOURCES = ['jwksUrl', 'jwksFile', 'keyFile', 'secret'] as const

/**
 * Returns the problems of settings of authentication, authorization and TLS that exclude or require
 * each other.
 */
export function securityConflicts({ authentication, api, authorization, security }: Config): string[] {
  const problems: string[] = []
  if (authentication.enable || api.authentication.enable) {
    const given = KEY_SOURCES.filter((name) => authentication[name] !== '')
    const allowed = `allowed: exactly one of ${KEY_SOURCES.map((name) => `authentication.${name}`).join(', ')}`
    if (given.length === 0) problems.push(`authentication: it is on and has no keys; ${allowed}`)
    if (given.length > 1) problems.push(`authentication: ${given.join(' and ')} are both set; ${allowed}`)
  }
  if (authorization.enable && authorization.policyFile === '') {
    problems.push('authorization.policyFile: authorization is on and has no policy; allowed: a path')
  }
  const { certFile, keyFile, caFile } = security
  if ((certFile === '') !== (keyFile === '')) {
    const missing = certFile === '' ? 'certFile' : 'keyFile'
    problems.push(`security.${missing}: it is missing; allowed: a certificate and its key, or neither`)
  } else if (caFile !== '' && certFile === '') {
    problems.push(
      'security.caFile: clients can be asked for certificates only over TLS; allowed: with certFile and keyFile',
    )
  }
  return problems
}
