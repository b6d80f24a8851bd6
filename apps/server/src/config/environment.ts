import { ENGINE_PREFIXES } from '../engine/engine-settings.ts'
import { SETTINGS } from './settings.ts'
import { closest, mostSimilar } from '@signalbox/broker-core/internal'
import type { Given } from './value.ts'
import { readSettingText } from './value.ts'

/**
 * Prefixes that only Signalbox uses. An unknown variable with one of them is an error, because it
 * may have been meant to enable a protection. Other programs share `HTTP_`, `API_` and `LOG_`
 * (`HTTP_PROXY`, `API_KEY`), so only the names of settings count there.
 */
const OUR_PREFIXES = [
  'API_AUTHENTICATION_',
  'API_SECURITY_',
  'AUDIT_',
  'AUTHENTICATION_',
  'AUTHORIZATION_',
  'CONNECTORS',
  'CORS_',
  ...ENGINE_PREFIXES,
  'QUEUE_',
  'ROUTING_',
  'SECURITY_',
  'SETTLE_',
  'STORE_',
]

/** Further prefixes of settings. An unknown variable with one of them is named at the start. */
const LIKELY_PREFIXES = ['LIMITS_', 'WEBHOOKS_']

/** Prefixes of other programs that are a letter away from `API_` and `HTTP_`. */
const FOREIGN_PREFIXES = ['APP_', 'HTTPS_']

/** A prefix that only the variables of commands have (`SIGNALBOX_TOKEN`). */
const COMMAND_PREFIX = 'SIGNALBOX_'

/** Variables that Kubernetes and Docker set for a service with a name such as `store`. */
const SERVICE_LINK =
  /^[A-Z0-9_]+_(?:SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_[A-Z]+)?)?)$/

/**
 * Reads settings from environment variables. `notices` names variables that look like a misspelt
 * setting. The lines about unknown variables omit their values, which may be secrets.
 */
export function fromEnvironment(env: Readonly<Record<string, string | undefined>>): {
  given: Given[]
  problems: string[]
  notices: string[]
} {
  const given: Given[] = []
  for (const setting of SETTINGS) {
    const text = env[setting.env]
    if (text !== undefined) {
      given.push({ setting, value: readSettingText(setting, text), origin: `environment ${setting.env}` })
    }
  }
  const known = SETTINGS.map((setting) => setting.env)
  const unknown = Object.keys(env)
    .filter((name) => !known.includes(name))
    .sort()
  const ours = unknown.filter((name) => startsWithOneOf(name, OUR_PREFIXES))
  const problems = ours
    .filter((name) => !SERVICE_LINK.test(name))
    .map((name) => {
      const meant = mostSimilar(name, known)
      return `${name}: unknown environment variable${meant ? `; did you mean ${meant}?` : ''}; allowed: the names that --help lists`
    })
  const notices = unknown
    .filter((name) => !ours.includes(name) && !isServiceLink(name, env[name] ?? ''))
    .flatMap((name) => {
      const meant = meantBy(name, known)
      if (meant === undefined && !startsWithOneOf(name, LIKELY_PREFIXES)) return []
      return `${name}: no setting has this name, so it has no effect${meant ? `; did you mean ${meant}?` : ''}`
    })
  return { given, problems, notices }
}

/** Returns the setting that a variable with a shared prefix looks like: with a typing mistake, or the command prefix. */
function meantBy(name: string, known: readonly string[]): string | undefined {
  if (name.startsWith(COMMAND_PREFIX)) return known.find((setting) => name === `${COMMAND_PREFIX}${setting}`)
  if (startsWithOneOf(name, FOREIGN_PREFIXES)) return undefined
  return closest(name, known, name.length < 12 ? 1 : 2)
}

function startsWithOneOf(name: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => name.startsWith(prefix))
}

/** Misspelt, `HTTP_PORT=9091` can have the name of a service link: only the value, `tcp://…`, distinguishes them. */
function isServiceLink(name: string, value: string): boolean {
  return SERVICE_LINK.test(name) && (/_SERVICE_/.test(name) || /^(?:tcp|udp|sctp):/.test(value))
}
