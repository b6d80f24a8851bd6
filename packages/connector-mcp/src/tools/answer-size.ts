/**
 * Size of an answer after which no further message is added, in bytes, so that 100 large messages do not become one
 * huge text.
 */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024

/** The limit, for the descriptions of the tools that return messages. */
export const MAX_ANSWER_TEXT =
  'One answer contains at most about 16 MiB, so it may contain fewer messages than requested.'
