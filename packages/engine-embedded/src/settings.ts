/** The setting of the store's folder for a server's configuration, as keywords of a JSON Schema string. */
export const STORE_PATH_SETTING = {
  default: './data',
  minLength: 1,
  allowed: 'a path',
  description: "The folder of the embedded engine's store, created if missing. Only one process can open it at a time.",
} as const

/** The default maximum number of channels in a store. */
export const DEFAULT_MAX_CHANNELS = 10_000
