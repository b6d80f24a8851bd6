import { withoutPasswords } from '../engine/engines.ts'
import type { Config } from './schema.ts'
import { HIDDEN, SETTINGS } from './settings.ts'

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
