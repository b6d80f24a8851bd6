/** The errors of webhook subscriptions, by the codes of `CE_ERRORS`. */
const CODES = [
  'SUBSCRIPTION_INVALID',
  'SUBSCRIPTION_UNKNOWN',
  'SUBSCRIPTION_LIMIT',
  'ENDPOINT_REFUSED',
  'ENDPOINT_UNVERIFIED',
  'HANDSHAKE_LIMIT',
  'WEBHOOKS_UNAVAILABLE',
] as const

export type PushErrorCode = (typeof CODES)[number]

/** An error that a call on webhook subscriptions may reject with. The client receives its message. */
interface PushError extends Error {
  readonly code: PushErrorCode
  readonly details: Readonly<Record<string, unknown>>
}

/** Recognizes an error by its code: the webhooks are another package, which this one does not import. */
export function isPushError(error: unknown): error is PushError {
  if (!(error instanceof Error) || !('code' in error) || !('details' in error)) return false
  return CODES.some((code) => code === error.code) && typeof error.details === 'object' && error.details !== null
}
