import { ENGINE_PREFIXES } from '../engine/engine-settings.ts'
import { SETTINGS } from './settings.ts'
import { mostSimilar } from '@signalbox/broker-core/internal'
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

/** Variables that Kubernetes and Docker set for a service with a name such as `store`. */
const SERVICE_LINK =
  /^[A-Z0-9_]+_(?:SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_[A-Z]+)?)?)$/

/**
 * Reads settings from environment variables. The problem of an unknown variable omits its value,
 * which may be a secret.
 */
export function fromEnvironment(env: Readonly<Record<string, string | undefined>>): {
  given: Given[]
  problems: string[]
} {
  const given: Given[] = []
  for (const setting of SETTINGS) {
    const text = env[setting.env]
    if (text !== undefined) {
      given.push({ setting, value: readSettingText(setting, text), origin: `environment ${setting.env}` })
    }
  }
  const known = SETTINGS.map((setting) => setting.env)
  const problems = Object.keys(env)
    .filter((name) => !known.includes(name) && OUR_PREFIXES.some((prefix) => name.startsWith(prefix)))
    .filter((name) => !SERVICE_LINK.test(name))
    .sort()
    .map((name) => {
      const meant = mostSimilar(name, known)
      return `${name}: unknown environment variable${meant ? `; did you mean ${meant}?` : ''}; allowed: the names that --help lists`
    })
  return { given, problems }
}
