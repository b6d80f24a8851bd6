/**
 * Keys of rows are one integer, `(channel << SEQUENCE_BITS) | sequence`. A channel's rows are therefore adjacent in one
 * B-tree in the order of their sequences, appends need no second index, and reading from a sequence is one seek. 23
 * bits remain for the channel: 8 million channels at a time.
 */
const SEQUENCE_BITS = 40
export const MAX_CHANNEL_ID = 2 ** 23 - 1

/** The SQL for a key, `(channel << 40) | sequence`; bind the two numbers in this order. */
export const KEY = `((? << ${SEQUENCE_BITS}) | ?)`
/** The SQL for the sequence of a key. */
export const SEQUENCE = `(key & ${2 ** SEQUENCE_BITS - 1})`
/** The SQL for the channel of a key. */
export const CHANNEL = `(key >> ${SEQUENCE_BITS})`
/** The highest sequence of a key, and the end of a channel's range. */
export const LAST_SEQUENCE = 2 ** SEQUENCE_BITS - 1
