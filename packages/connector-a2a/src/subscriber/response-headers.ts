/** The headers of an agent's response that a caller gets who speaks an official version of A2A. */
const RELAYED = ['a2a-extensions', 'x-a2a-extensions', 'a2a-version', 'retry-after'] as const

/** Only with status 401: clients read it with any status. */
const CHALLENGE = 'www-authenticate'

/** Longer values are dropped. */
const MAX_CHARACTERS = 4_096

// Header values that every HTTP implementation can carry (RFC 9110, section 5.5).
const CARRIABLE = /^[\t\u0020-\u007e]*$/

/** Returns the headers that the caller gets, by lower-case name; undefined if there are none. */
export function relayedHeaders(
  status: number,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Readonly<Record<string, string>> | undefined {
  let relayed: Record<string, string> | undefined
  for (const name of status === 401 ? [...RELAYED, CHALLENGE] : RELAYED) {
    const value = headers[name]
    if (value === undefined) continue
    const text = typeof value === 'string' ? value : value.join(', ')
    if (text.length <= MAX_CHARACTERS && CARRIABLE.test(text)) (relayed ??= {})[name] = text
  }
  return relayed
}
