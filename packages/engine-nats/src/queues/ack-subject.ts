/** What the servers say of a delivery in the subject that acknowledges it. */
export interface AckSubject {
  /** How often the message was delivered, this time included. */
  readonly deliveries: number
  readonly sequence: number
  /** Counts the deliveries of the consumer: no two are the same. */
  readonly delivery: number
  /** When the message was stored, milliseconds since the epoch. */
  readonly timestamp: number
  /** How many more the consumer has to give. */
  readonly pending: number
}

/** `$JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<delivery>.<nanoseconds>.<pending>`, or with domain and account before the stream. */
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

/** Settles a delivery whose own subject is not at hand. */
export function ackSubject(stream: string, consumer: string, sequence: number, delivery = 1): string {
  return `$JS.ACK.${stream}.${consumer}.1.${sequence}.${delivery}.0.0`
}

export const ACK = '+ACK'
export const NAK = '-NAK'

/** Makes the message visible again after a while. */
export function nakAfter(milliseconds: number): string {
  return `-NAK {"delay":${Math.max(1, Math.round(milliseconds)) * 1_000_000}}`
}
