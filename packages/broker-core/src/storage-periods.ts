/** The time in which an engine recognizes a repeated send by its deduplication id, in ms. */
export const DEDUPLICATION_MS = 2 * 60_000

/** The time for which a tombstone remains in a compacted events store for its subscribers, in ms. */
export const TOMBSTONE_MS = 60 * 60_000

/** The time for which the position of a durable group is kept after its last subscriber left, in ms: seven days. */
export const DURABLE_GROUP_MS = 7 * 24 * 60 * 60_000

/** The number of durable groups that one events store may have. */
export const MAX_DURABLE_GROUPS = 1_000
