import type { TrustedOrigins } from '@signalbox/http-kit'

/** Converts a list setting for the origin policies. */
export function trustedOrigins(setting: readonly string[]): TrustedOrigins {
  if (setting.includes('*')) return '*'
  return setting.includes('auto') ? 'auto' : setting
}
