import { readProxyUrl } from '@signalbox/connector-a2a'
import { originPolicy } from '@signalbox/http-kit'
import { AgentAddressPolicy } from '@signalbox/registry'
import { Check } from 'typebox/schema'

import type { Setting, SettingValue } from './settings.ts'
import { allowedText, HIDDEN } from './settings.ts'

/** The source of a value: `environment`, `flag --http-port`, `file signalbox.yaml`. */
export type OriginText = string

/** A value for a setting that is not validated yet. */
export interface Given {
  readonly setting: Setting
  readonly value: unknown
  readonly origin: OriginText
}

/**
 * Converts the text of an environment variable or flag. A text that does not convert remains a
 * text; validation refuses it later.
 */
export function readSettingText({ schema }: Setting, text: string): unknown {
  if (schema.type === 'integer') return /^-?[0-9]{1,16}$/.test(text) ? Number(text) : text
  if (schema.type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (schema.type === 'array') return splitList(text)
  return text
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/** Converts a YAML value. A list may also be a text with commas. */
export function readYaml({ schema }: Setting, value: unknown): unknown {
  return schema.type === 'array' && typeof value === 'string' ? splitList(value) : value
}

/** Validates a value. Returns the value, or one line with the problem. */
export function checked({ setting, value, origin }: Given): { value: SettingValue } | { problem: string } {
  const given = setting.schema.secret ? HIDDEN : shown(value)
  const refusal = `${setting.key}: ${given} (${origin}) is not allowed; allowed: ${allowedText(setting.schema)}`
  if (!isSettingValue(value) || !Check(setting.schema, value)) return { problem: refusal }
  if (setting.key.endsWith('Origins') && !isOriginList(value)) return { problem: refusal }
  if (setting.key.endsWith('.agentProxyUrl') && value !== '' && !isProxyUrl(value)) return { problem: refusal }
  return /\.agentUrl(?:Allow|Deny)$|^webhooks\.allow$/.test(setting.key) && !isAddressList(value)
    ? { problem: refusal }
    : { value }
}

function isProxyUrl(value: SettingValue): boolean {
  if (typeof value !== 'string') return false
  try {
    void readProxyUrl(value)
    return true
  } catch {
    return false
  }
}

function isAddressList(value: SettingValue): boolean {
  if (typeof value !== 'object') return false
  try {
    void new AgentAddressPolicy({ allow: value })
    return true
  } catch {
    return false
  }
}

/** `auto` and `*` are valid only alone; the origin policy validates other lists. */
function isOriginList(value: SettingValue): boolean {
  if (typeof value !== 'object') return false
  if (value.length === 1 && (value[0] === 'auto' || value[0] === '*')) return true
  try {
    originPolicy(value)
    return true
  } catch {
    return false
  }
}

function isSettingValue(value: unknown): value is SettingValue {
  return (
    typeof value === 'string' ||
    typeof value === 'number' ||
    typeof value === 'boolean' ||
    (Array.isArray(value) && value.every((item) => typeof item === 'string'))
  )
}

/** Returns a value on one line, shortened. */
function shown(value: unknown): string {
  const text = jsonOf(value) ?? String(value)
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}

/** A YAML value is circular if it has an alias inside its own anchor. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return 'a circular value'
  }
}
