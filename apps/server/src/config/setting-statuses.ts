import type { SettingStatus, SettingStatusValue } from '@signalbox/management-api'

import { derivedDefaults } from './limits.ts'
import { maskedConfig } from './masked.ts'
import type { Config } from './schema.ts'
import type { Setting } from './settings.ts'
import { allowedText, SETTING_GROUPS } from './settings.ts'
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
