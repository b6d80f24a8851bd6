/** The kind of error in a CESQL expression, found before evaluation. */
export type CesqlParseErrorKind = 'parse' | 'missingFunction'

/** The error for a CESQL expression that cannot be compiled. The message contains the reason and the position. */
export class CesqlParseError extends Error {
  override readonly name = 'CesqlParseError'
  readonly kind: CesqlParseErrorKind
  /** The index of the offending character, from 0. */
  readonly at: number

  constructor(message: string, at: number, kind: CesqlParseErrorKind = 'parse') {
    super(`${message} (at character ${at + 1})`)
    this.kind = kind
    this.at = at
  }
}

/** The error for a routing table that is not valid, with all its problems. */
export class RoutingTableError extends Error {
  override readonly name = 'RoutingTableError'
  /** The problems, one line each. A line about an entry begins with the entry's index, from 0. */
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`the routing table is not valid: ${problems.join('; ')}`)
    this.problems = problems
  }
}
