/** The setting of the store's folder for a server's configuration, as keywords of a JSON Schema string. */
export const STORE_PATH_SETTING = {
  default: './data',
  minLength: 1,
  allowed: 'a path',
  description: "The embedded engine's folder, created when missing. One process at a time.",
} as const

/** The most channels of a store where nobody sets a limit (C4). */
export const DEFAULT_MAX_CHANNELS = 10_000
