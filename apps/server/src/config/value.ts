import { readProxyUrl } from '@signalbox/connector-a2a'
import { originPolicy } from '@signalbox/http-kit'
import { AgentAddressPolicy } from '@signalbox/registry'
import { Check } from 'typebox/schema'

import type { Setting, SettingValue } from './settings.ts'
import { allowedText, HIDDEN } from './settings.ts'

/** Where a value came from, in words: `environment`, `flag --http-port`, `file signalbox.yaml`. */
export type OriginText = string

/** A value that a source gives for a setting, not yet checked. */
export interface Given {
  readonly setting: Setting
  readonly value: unknown
  readonly origin: OriginText
}

/** Reads the text of an environment variable or flag. What does not read as the setting's type stays text, and is refused later. */
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

/** Lists may be written as text with commas in a file too. */
export function readYaml({ schema }: Setting, value: unknown): unknown {
  return schema.type === 'array' && typeof value === 'string' ? splitList(value) : value
}

/** The value if the setting may have it; otherwise the one line that says why not. */
export function checked({ setting, value, origin }: Given): { value: SettingValue } | { problem: string } {
  const given = setting.schema.secret ? HIDDEN : shown(value)
  const refusal = `${setting.key}: ${given} (${origin}) is not allowed; allowed: ${allowedText(setting.schema)}`
  if (!isSettingValue(value) || !Check(setting.schema, value)) return { problem: refusal }
  if (setting.key.endsWith('Origins') && !isOriginList(value)) return { problem: refusal }
  if (setting.key.endsWith('.agentProxyUrl') && value !== '' && !isProxyUrl(value)) return { problem: refusal }
  return /\.agentUrl(?:Allow|Deny)$/.test(setting.key) && !isAddressList(value) ? { problem: refusal } : { value }
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

/** `auto` and `*` stand alone; the rest is for the policy to say. */
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

/** A value on one line, cut. */
function shown(value: unknown): string {
  const text = jsonOf(value) ?? String(value)
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}

/** With an alias inside its own anchor, a YAML value holds itself. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return 'a value that holds itself'
  }
}
