import type { SettingStatus, SettingStatusValue } from '@signalbox/management-api'

import { withoutPasswords } from '../engine/engines.ts'
import { derivedDefaults } from './limits.ts'
import type { Config } from './schema.ts'
import type { Setting } from './settings.ts'
import { allowedText, HIDDEN, SETTING_GROUPS, SETTINGS } from './settings.ts'
import type { OriginText } from './value.ts'

const DOCUMENTATION = 'https://github.com/signalbox/signalbox/blob/main/docs/reference/configuration.md'

/** The sources of values, by the setting's key. */
export type Origins = ReadonlyMap<string, OriginText>

/**
 * Returns every setting with its effective value and the source of the value. Secrets and passwords
 * are masked.
 * @param origins Undefined if a program passed the configuration
 */
export function settingStatuses(config: Config, origins: Origins | undefined): readonly SettingStatus[] {
  const masked = maskedConfig(config)
  return SETTING_GROUPS.flatMap(({ title, settings }) =>
    settings.map((setting) => {
      const { key, env, schema } = setting
      const value = valueAt(masked, setting)
      const source = sourceOf(setting, value, origins)
      return {
        key,
        env,
        group: title === 'Signalbox' ? 'General' : title,
        value,
        default: defaultOf(setting),
        origin: originOf(source),
        origin_detail: source,
        description: schema.description,
        allowed: allowedText(schema),
        documentation: `${DOCUMENTATION}#${env.toLowerCase()}`,
      }
    }),
  )
}

function valueAt(masked: object, { path, schema }: Setting): SettingStatusValue {
  const value = path.reduce<unknown>(
    (section, name) => (typeof section === 'object' && section !== null ? Reflect.get(section, name) : undefined),
    masked,
  )
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value
  return Array.isArray(value) ? value.map(String) : schema.default
}

/** Returns the default on this machine. */
function defaultOf({ key, schema }: Setting): SettingStatusValue {
  return derivedDefaults().get(key) ?? schema.default
}

function sourceOf(setting: Setting, value: SettingStatusValue, origins: Origins | undefined): OriginText {
  const changed = JSON.stringify(value) !== JSON.stringify(defaultOf(setting))
  const { key } = setting
  const source = origins?.get(key) ?? (changed ? 'program' : 'default')
  // Only the file is read again while the server runs, and only for limits.
  return source === 'default' && changed && key.startsWith('limits.') ? 'file' : source
}

/** Returns the kind of a source such as `environment HTTP_PORT`. */
function originOf(source: OriginText): SettingStatus['origin'] {
  const [kind = ''] = source.split(' ')
  const kinds: readonly SettingStatus['origin'][] = ['default', 'file', 'environment', 'flag']
  return kinds.find((each) => each === kind) ?? 'program'
}

/** Returns the effective configuration for operators. Secrets and passwords are masked. */
export function maskedConfig(config: Config): object {
  const masked: Record<string, unknown> = { ...structuredClone(withoutPasswords(config)) }
  for (const { path, schema } of SETTINGS) {
    if (schema.secret === true) mask(masked, path)
  }
  return masked
}

function mask(section: Record<string, unknown>, [name = '', ...rest]: readonly string[]): void {
  const value = section[name]
  if (rest.length > 0 && isSection(value)) mask(value, rest)
  else if (rest.length === 0 && value !== '') section[name] = HIDDEN
}

function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
