/** The most messages, and the most bytes, in one delivery and in the buffer of one subscription. */
export const BUFFERED_ITEMS = 64
export const BUFFERED_BYTES = 1024 * 1024

/** The pause before a failed source is opened again, in ms. */
export const REOPEN_MS = 1_000
