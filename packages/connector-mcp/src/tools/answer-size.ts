/** No further message is added to an answer past this many bytes, so that 100 large ones do not become one huge text. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024

/** The same, for the descriptions of the tools that return messages. */
export const MAX_ANSWER_TEXT = 'One answer holds at most about 16 MiB, so large messages may come fewer at a time.'
