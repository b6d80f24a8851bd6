import { Type } from 'typebox'

/** The query parameters that several routes share. The Broker checks channel names. */

export function channel(description: string) {
  return Type.String({ description })
}

export function eventChannel() {
  return Type.Optional(channel('The channel of events without a `subject`.'))
}

/** The longest delay or expiry, in seconds. Added to the current time, it still makes a valid date. */
const MAX_SECONDS = 1_000_000_000_000

export function seconds(description: string) {
  return Type.Optional(Type.Integer({ description, minimum: 0, maximum: MAX_SECONDS, default: 0 }))
}

export function receipts(description: string) {
  return Type.Array(Type.String({ minLength: 1 }), { description, minItems: 1, maxItems: 1000 })
}

/**
 * Parameters that clients of other brokers send with every request. All routes accept them, so that such clients work
 * unchanged.
 */
export const IGNORED_PARAMETERS = {
  client_id: Type.Optional(
    Type.String({
      description: 'Accepted for clients of other brokers, and ignored: the credentials determine the caller.',
    }),
  ),
  wait_timeout: Type.Optional(Type.String({ description: 'Accepted for clients of other brokers, and ignored.' })),
}

export const STRICT = { additionalProperties: false } as const
