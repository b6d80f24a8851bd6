import { VERSION } from '../version.ts'
import type { Check } from './checks.ts'
import type { JsonObject } from './json.ts'
import { isObject, textOf } from './json.ts'

/** Compares the version of the server with that of this command. */
export function versionCheck(server: string): Check {
  const name = 'current'
  const order = compareVersions(server, VERSION)
  if (order === 0) return { name, state: 'ok', detail: `version ${server}, as this command` }
  return order < 0
    ? { name, state: 'warning', detail: `the server is ${server}, this command is ${VERSION}; upgrade the server` }
    : { name, state: 'warning', detail: `the server is ${server}, this command is ${VERSION}; upgrade the command` }
}

/** Returns a negative number if `a` is the older version, 0 if both are the same. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [numbersOf(a), numbersOf(b)]
  for (const [i, number] of left.entries()) {
    const difference = number - (right[i] ?? 0)
    if (difference !== 0) return difference
  }
  return a === b ? 0 : a.includes('-') ? -1 : 1
}

function numbersOf(version: string): readonly number[] {
  return version.split(/[.+-]/).slice(0, 3).map(Number)
}

const EVERYWHERE = new Set(['0.0.0.0', '::', '[::]'])

function isWide(host: unknown): boolean {
  return EVERYWHERE.has(textOf(host))
}

/** Returns the problems of a configuration, by the keys of the configuration file. */
export function configurationChecks(config: JsonObject): readonly Check[] {
  const read = (path: string): unknown =>
    path.split('.').reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), config)
  const checks: Check[] = []
  const warn = (name: string, detail: string): void => void checks.push({ name, state: 'warning', detail })
  const fail = (name: string, detail: string): void => void checks.push({ name, state: 'failed', detail })
  if (isWide(read('http.host')) && read('authentication.enable') !== true) {
    fail(
      'authentication',
      'off on a server that listens on every address; set AUTHENTICATION_ENABLE, or HTTP_HOST to one address',
    )
  }
  if (isWide(read('api.host')) && read('api.authentication.enable') !== true) {
    fail('management', 'open on every address; set API_AUTHENTICATION_ENABLE, or API_HOST=127.0.0.1')
  }
  if (isWide(read('http.host')) && read('security.certFile') === '') {
    warn(
      'encryption',
      'the server itself has no certificate; a proxy in front of it must encrypt, or set SECURITY_CERT_FILE',
    )
  }
  if (read('authentication.enable') === true && read('authorization.enable') !== true) {
    warn('policy', 'off: every caller with a token may use every channel; set AUTHORIZATION_ENABLE and a policy')
  }
  if (read('connectors.a2a.agentTlsSkipVerify') === true) {
    warn(
      'agents',
      'certificates of agents are not verified; use CONNECTORSA2_A_AGENT_CA_FILE in place of CONNECTORSA2_A_AGENT_TLS_SKIP_VERIFY',
    )
  }
  if (read('queue.maxMessages') === 0 && read('queue.maxBytes') === 0) {
    warn(
      'queues',
      'without limit: a queue without a receiver fills the disk; set QUEUE_MAX_MESSAGES or QUEUE_MAX_BYTES',
    )
  }
  if (read('store.maxAgeSeconds') === 0 && read('store.maxBytes') === 0) {
    warn('stores', 'without limit: events stores keep everything; set STORE_MAX_AGE_SECONDS or STORE_MAX_BYTES')
  }
  return checks
}
