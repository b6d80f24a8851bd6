/** `default`: the default settings. `guarded`: tokens, a policy, roles for operators, and a heap of 512 MB. */
export type ServerKind = 'default' | 'guarded'

export const SERVER_KINDS: readonly ServerKind[] = ['default', 'guarded']

/** The storage of the server under attack, as the setting `ENGINE` names it. */
export type EngineName = 'embedded' | 'nats'

export const ENGINE_NAMES: readonly EngineName[] = ['embedded', 'nats']
