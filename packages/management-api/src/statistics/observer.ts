/** The caller of statistics. It has no special rights, so reserved channels never appear. */
export const OBSERVER = Object.freeze({ clientId: 'signalbox' })
