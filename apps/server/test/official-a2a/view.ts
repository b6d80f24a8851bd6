const ID_MEMBERS = new Set(['id', 'taskId', 'contextId', 'messageId', 'nextPageToken'])
const RANDOM_ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/

/**
 * Makes two runs of the same conversation comparable: ids are named in the order in which they first occur, and times are
 * equal. A time that is not RFC 3339 in UTC stays, so that it is seen.
 */
export function comparable(view: unknown): unknown {
  const names = new Map<string, string>()
  const name = (id: string): string => {
    const known = names.get(id) ?? `#${names.size + 1}`
    names.set(id, known)
    return known
  }
  const text = JSON.stringify(view, (member, value: unknown) => {
    // The same as their absence.
    if ((member === 'append' || member === 'lastChunk') && value === false) return undefined
    if (typeof value !== 'string') return value
    if (member === 'timestamp' && TIMESTAMP.test(value)) return 'a time'
    return ID_MEMBERS.has(member) || RANDOM_ID.test(value) ? value.replaceAll(RANDOM_ID, name) : value
  })
  return text === undefined ? undefined : JSON.parse(text)
}

interface SdkError extends Error {
  readonly reason?: unknown
  readonly envelopeCode?: unknown
  readonly errorResponse?: { readonly error?: { readonly code?: unknown; readonly message?: unknown } }
}

/** What the user of an SDK learns of an error. */
function viewError(error: unknown): unknown {
  const { name, message, cause, reason, envelopeCode, errorResponse } = error as SdkError
  return {
    name,
    // The SDK for 0.3 puts the whole answer into the text.
    message: message.replace(/ Data: .*$/s, ''),
    ...(reason !== undefined && { reason }),
    code: envelopeCode ?? errorResponse?.error?.code,
    answered: errorResponse?.error?.message,
    ...(cause !== undefined && cause !== null && typeof cause === 'object' && { cause: viewError(cause) }),
  }
}

/** Resolves with the view of a call, or of its error. */
export async function outcome(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call
  } catch (error) {
    return { error: viewError(error) }
  }
}

/**
 * The codes of the errors in a view, in their order. Where an SDK has no member for the code, its text has it, or else it does
 * not show the code.
 */
export function errorCodes(view: unknown): readonly (number | 'hidden')[] {
  const codes: (number | 'hidden')[] = []
  JSON.stringify(view, (member, value: unknown) => {
    if (member === 'error') {
      const { code, message } = value as { code?: number; message: string }
      const [, inText] = /\(Code: (-\d+)\)/.exec(message) ?? []
      codes.push(code ?? (inText === undefined ? 'hidden' : Number(inText)))
    }
    return value
  })
  return codes
}

interface ViewedError {
  readonly message: string
  readonly cause?: ViewedError
}

/** Returns a view in which an error is only the message that the agent gave it. */
export function errorMessages(view: unknown): unknown {
  const text = JSON.stringify(view, (member, value: unknown) => {
    if (member !== 'error') return value
    const { cause, message } = value as ViewedError
    return (cause ?? { message }).message
  })
  return text === undefined ? undefined : JSON.parse(text)
}
