/** The most messages, and the most bytes, in one delivery and in the buffer of one subscription. */
export const BUFFERED_ITEMS = 64
export const BUFFERED_BYTES = 1024 * 1024

/** The most deliveries of a subscription under way, if it does not ask for order. */
export const UNORDERED = 16

/** The most messages of a subscription under way. */
export const MAX_UNDER_WAY = UNORDERED * BUFFERED_ITEMS
