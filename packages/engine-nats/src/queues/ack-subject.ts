/** The values that the servers put into the subject that acknowledges a delivery. */
export interface AckSubject {
  /** The number of deliveries of the message, including this one. */
  readonly deliveries: number
  readonly sequence: number
  /** The number of this delivery among all deliveries of the consumer; unique. */
  readonly delivery: number
  /** The time when the message was stored, in milliseconds since the epoch. */
  readonly timestamp: number
  /** The number of messages that the consumer has still to deliver. */
  readonly pending: number
}

/**
 * Parses `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<delivery>.<nanoseconds>.<pending>`, also with
 * domain and account before the stream.
 */
export function parseAckSubject(subject: string): AckSubject | undefined {
  const tokens = subject.split('.')
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK' || tokens.length < 9) return undefined
  const from = tokens.length > 9 ? 6 : 4
  const [deliveries, sequence, delivery, nanoseconds = '', pending] = tokens.slice(from)
  return {
    deliveries: Number(deliveries),
    sequence: Number(sequence),
    delivery: Number(delivery),
    timestamp: Number(nanoseconds.slice(0, -6)),
    pending: Number(pending),
  }
}

/** Returns a subject that settles a delivery whose original subject is unknown. */
export function ackSubject(stream: string, consumer: string, sequence: number, delivery = 1): string {
  return `$JS.ACK.${stream}.${consumer}.1.${sequence}.${delivery}.0.0`
}

export const ACK = '+ACK'
export const NAK = '-NAK'

/** Returns the payload that makes a message visible again after this delay. */
export function nakAfter(milliseconds: number): string {
  return `-NAK {"delay":${Math.max(1, Math.round(milliseconds)) * 1_000_000}}`
}
