/** The time in which an engine recognizes a repeated send by its deduplication id, in ms. */
export const DEDUPLICATION_MS = 2 * 60_000

/** The time for which a tombstone remains in a compacted events store for its subscribers, in ms. */
export const TOMBSTONE_MS = 60 * 60_000
