import { Type } from 'typebox'

/** The kinds of query parameter that several routes share. Names of channels are checked by the Broker. */

export function channel(description: string) {
  return Type.String({ description })
}

export function eventChannel() {
  return Type.Optional(channel('The channel of events without a `subject`.'))
}

/** The longest delay or expiry that still makes a date when added to now. */
const MAX_SECONDS = 1_000_000_000_000

export function seconds(description: string) {
  return Type.Optional(Type.Integer({ description, minimum: 0, maximum: MAX_SECONDS, default: 0 }))
}

export function receipts(description: string) {
  return Type.Array(Type.String({ minLength: 1 }), { description, minItems: 1, maxItems: 1000 })
}

/** What clients of other brokers send with every request. Taken everywhere, so that they need not be changed. */
export const IGNORED_PARAMETERS = {
  client_id: Type.Optional(
    Type.String({ description: 'Taken for clients of other brokers, and ignored: the caller is who it proves to be.' }),
  ),
  wait_timeout: Type.Optional(Type.String({ description: 'Taken for clients of other brokers, and ignored.' })),
}

export const STRICT = { additionalProperties: false } as const
