import { TrustedProxies } from '@signalbox/http-kit'
import { NameResolver, readPublicUrl } from '@signalbox/http-kit/internal'
import { Parse } from 'typebox/schema'

import { defaultMaxChannels } from '../engine/engine-settings.ts'
import { ServerError } from '../errors.ts'
import { fromEnvironment } from './environment.ts'
import { fromFile } from './file.ts'
import type { Flags } from './flags.ts'
import { derivedDefaults } from './limits.ts'
import type { Config } from './schema.ts'
import { CONFIG_SCHEMA } from './schema.ts'
import { fromSecretFiles } from './secret-files.ts'
import { securityConflicts } from './security.ts'
import type { SettingValue } from './settings.ts'
import { SETTINGS } from './settings.ts'
import type { Given, OriginText } from './value.ts'
import { checked } from './value.ts'

/** The effective configuration, with the source of each value. */
export interface LoadedConfig {
  readonly config: Config
  /** By key, such as `http.port`. */
  readonly origins: ReadonlyMap<string, OriginText>
  /** Environment variables that look like settings and are none, a line for each. */
  readonly notices: readonly string[]
}

export interface ConfigSources {
  readonly flags: Flags
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Some of the settings. */
export type PartialConfig = {
  readonly [K in keyof Config]?: Config[K] extends readonly unknown[] | string | number | boolean
    ? Config[K]
    : PartialSection<Config[K]>
}

type PartialSection<T> = {
  readonly [K in keyof T]?: T[K] extends readonly unknown[] | string | number | boolean ? T[K] : PartialSection<T[K]>
}

/**
 * Merges the sources. A later source wins: defaults, file, environment, flags.
 * @throws ServerError CONFIG_INVALID, listing every problem
 */
export async function loadConfig({ flags, env }: ConfigSources): Promise<LoadedConfig> {
  const file = flags.file === undefined ? { given: [], problems: [] } : await fromFile(flags.file)
  const environment = fromEnvironment(env)
  const loaded = assemble(
    [...file.given, ...environment.given, ...flags.given],
    [...flags.problems, ...file.problems, ...environment.problems],
  )
  return { ...loaded, notices: environment.notices }
}

/**
 * Creates a configuration for a program that starts the server: the given settings, and the
 * defaults of the others. Does not read the environment.
 * @throws ServerError CONFIG_INVALID, listing every problem
 */
export function createConfig(partial: PartialConfig = {}): Config {
  const known = new Set(SETTINGS.map(({ key }) => key))
  const problems = leavesOf(partial, '')
    .filter((key) => !known.has(key))
    .map((key) => `${key}: unknown setting`)
  const given = SETTINGS.flatMap((setting): Given[] => {
    const value = valueAt(partial, setting.path)
    return value === undefined ? [] : [{ setting, value, origin: 'program' }]
  })
  return assemble(given, problems).config
}

function assemble(given: readonly Given[], problems: string[]): Omit<LoadedConfig, 'notices'> {
  const values = new Map<string, SettingValue>(SETTINGS.map(({ key, schema }) => [key, schema.default]))
  const origins = new Map<string, OriginText>(SETTINGS.map(({ key }) => [key, 'default']))
  const take = (all: readonly Given[]): void => {
    for (const one of all) {
      const result = checked(one)
      if ('problem' in result) {
        problems.push(result.problem)
      } else {
        values.set(one.setting.key, result.value)
        origins.set(one.setting.key, one.origin)
      }
    }
  }
  take(given)
  const secrets = fromSecretFiles(values, (key) => origins.get(key) !== 'default')
  problems.push(...secrets.problems)
  take(secrets.given)
  const maxChannels = defaultMaxChannels(values.get('engine'))
  if (maxChannels !== undefined && origins.get('maxChannels') === 'default') values.set('maxChannels', maxChannels)
  for (const [key, value] of derivedDefaults()) {
    if (origins.get(key) === 'default') values.set(key, value)
  }
  const config = nested(values)
  if (problems.length === 0) problems.push(...conflicts(config))
  if (problems.length > 0) throw new ServerError('CONFIG_INVALID', problems)
  return { config, origins }
}

/** Returns the problems of settings that exclude each other. */
function conflicts(config: Config): string[] {
  const { cors, connectors, dnsServers, trustedProxies } = config
  const { a2a } = connectors
  const problems = securityConflicts(config)
  if (cors.allowCredentials && cors.allowOrigins.includes('*')) {
    problems.push(
      'cors.allowCredentials: true is not allowed with cors.allowOrigins *, because browsers refuse it; allowed: a list of origins',
    )
  }
  if (a2a.maxTimeoutSeconds < a2a.defaultTimeoutSeconds) {
    problems.push(
      `connectors.a2a.maxTimeoutSeconds: ${a2a.maxTimeoutSeconds} is less than connectors.a2a.defaultTimeoutSeconds, which is ${a2a.defaultTimeoutSeconds}; allowed: at least that`,
    )
  }
  const tries: Readonly<Record<string, () => unknown>> = {
    publicUrl: () => config.publicUrl !== '' && readPublicUrl(config.publicUrl),
    dnsServers: () => new NameResolver({ servers: dnsServers }),
    trustedProxies: () => new TrustedProxies(trustedProxies),
  }
  for (const [key, attempt] of Object.entries(tries)) {
    try {
      attempt()
    } catch (error) {
      problems.push(`${key}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return problems
}

function nested(values: ReadonlyMap<string, SettingValue>): Config {
  const root: Record<string, unknown> = {}
  for (const { path, key } of SETTINGS) {
    let section = root
    for (const name of path.slice(0, -1)) {
      const next = section[name]
      if (isRecord(next)) section = next
      else section[name] = section = {}
    }
    section[path.at(-1) ?? key] = values.get(key)
  }
  return Parse(CONFIG_SCHEMA, root)
}

function valueAt(tree: unknown, path: readonly string[]): unknown {
  return path.reduce((node, name) => (isRecord(node) ? node[name] : undefined), tree)
}

function leavesOf(tree: object, prefix: string): string[] {
  return Object.entries(tree).flatMap(([name, value]: [string, unknown]) =>
    isRecord(value) ? leavesOf(value, `${prefix}${name}.`) : [`${prefix}${name}`],
  )
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
