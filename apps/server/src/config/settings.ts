import { CONFIG_SCHEMA } from './schema.ts'

export type SettingValue = string | number | boolean | readonly string[]

/** One setting, with its name in every source. */
export interface Setting {
  /** The path in the file: `['http', 'port']`. */
  readonly path: readonly string[]
  /** The path as text: `http.port`. */
  readonly key: string
  /** `HTTP_PORT` */
  readonly env: string
  /** `http-port` */
  readonly flag: string
  readonly schema: SettingSchema
}

/** The keywords of JSON Schema that settings use, with the additional keyword `allowed`. */
export interface SettingSchema {
  readonly type?: 'string' | 'integer' | 'boolean' | 'array' | 'object'
  readonly description: string
  readonly default: SettingValue
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly allowed?: string
  /** True if the value is never shown. */
  readonly secret?: true
}

/** The text in place of the value of a secret. */
export const HIDDEN = '[hidden]'

/** Settings under one heading. */
export interface SettingGroup {
  readonly title: string
  readonly settings: readonly Setting[]
}

interface GroupSchema {
  readonly description: string
  readonly properties: Readonly<Record<string, unknown>>
}

function isGroup(schema: unknown): schema is GroupSchema {
  return typeof schema === 'object' && schema !== null && 'properties' in schema && 'description' in schema
}

function isSetting(schema: unknown): schema is SettingSchema {
  return typeof schema === 'object' && schema !== null && 'default' in schema && 'description' in schema
}

/**
 * Converts `toolTimeoutSeconds` to `tool_timeout_seconds` and `a2a` to `a2_a`, as the specification
 * names settings.
 */
function snake(word: string): string {
  return word.replaceAll(/([a-z0-9])([A-Z])|([0-9])([a-z])/g, '$1$3_$2$4').toLowerCase()
}

/**
 * Returns the environment variable of a setting. For connectors the specification joins section and
 * name: `CONNECTORSMCP_…`.
 */
function envName(path: readonly string[]): string {
  return path
    .map(snake)
    .join('_')
    .replace(/^connectors_/, 'connectors')
    .toUpperCase()
}

function flagName(path: readonly string[]): string {
  return path.map((word) => word.replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2').toLowerCase()).join('-')
}

function collect(schema: unknown, path: readonly string[], groups: SettingGroup[]): void {
  if (!isGroup(schema)) throw new TypeError(`${path.join('.')} is neither a setting nor a group of settings`)
  const settings: Setting[] = []
  groups.push({ title: schema.description, settings })
  for (const [name, property] of Object.entries(schema.properties)) {
    const here = [...path, name]
    if (isSetting(property)) {
      settings.push({ path: here, key: here.join('.'), env: envName(here), flag: flagName(here), schema: property })
    } else {
      collect(property, here, groups)
    }
  }
}

const groups: SettingGroup[] = []
collect(CONFIG_SCHEMA, [], groups)

/** Every setting, by heading, in the order of the schema. Settings outside any group come first. */
export const SETTING_GROUPS: readonly SettingGroup[] = groups.filter(({ settings }) => settings.length > 0)

/** Every setting, in the order of the schema. */
export const SETTINGS: readonly Setting[] = SETTING_GROUPS.flatMap(({ settings }) => settings)

/** Describes the allowed values of a setting in words. */
export function allowedText({ type, enum: values, minimum, maximum, allowed }: SettingSchema): string {
  if (allowed !== undefined) return allowed
  if (values) return values.join(', ')
  if (type === 'boolean') return 'true, false'
  if (type !== 'integer') return 'text'
  return maximum === undefined || maximum === Number.MAX_SAFE_INTEGER
    ? `a whole number of at least ${minimum ?? 0}`
    : `a whole number from ${minimum ?? 0} to ${maximum}`
}
