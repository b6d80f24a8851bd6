/** `default`: as it comes. `guarded`: tokens, a policy, roles for operators, and a heap of 512 MB. */
export type ServerKind = 'default' | 'guarded'

export const SERVER_KINDS: readonly ServerKind[] = ['default', 'guarded']
