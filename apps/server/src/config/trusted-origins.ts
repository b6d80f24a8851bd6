import type { TrustedOrigins } from '@signalbox/http-kit'

/** A list setting as the origin policies take it. */
export function trustedOrigins(setting: readonly string[]): TrustedOrigins {
  if (setting.includes('*')) return '*'
  return setting.includes('auto') ? 'auto' : setting
}
