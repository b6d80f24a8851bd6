/**
 * Size of an answer after which no further message is added, in bytes, so that 100 large messages do not become one
 * huge text.
 */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024
