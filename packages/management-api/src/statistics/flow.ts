import { Type } from 'typebox'

/** Counters of messages, as plain numbers: counting must cost the messaging path nothing. */
export interface Flow {
  messagesIn: number
  messagesOut: number
  bytesIn: number
  bytesOut: number
  errors: number
}

export function noFlow(): Flow {
  return { messagesIn: 0, messagesOut: 0, bytesIn: 0, bytesOut: 0, errors: 0 }
}

export const flowFields = {
  messages_in: Type.Integer({ minimum: 0, description: 'Messages accepted.' }),
  messages_out: Type.Integer({ minimum: 0, description: 'Messages delivered; each delivery counts.' }),
  bytes_in: Type.Integer({ minimum: 0, description: 'Bytes of the bodies accepted.' }),
  bytes_out: Type.Integer({ minimum: 0, description: 'Bytes of the bodies delivered.' }),
  errors: Type.Integer({ minimum: 0, description: 'Calls to the broker that failed.' }),
}

export function flowShape({ messagesIn, messagesOut, bytesIn, bytesOut, errors }: Flow) {
  return {
    messages_in: messagesIn,
    messages_out: messagesOut,
    bytes_in: bytesIn,
    bytes_out: bytesOut,
    errors,
  }
}
