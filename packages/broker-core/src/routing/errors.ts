/** What is wrong with a CESQL expression before it ever runs. */
export type CesqlParseErrorKind = 'parse' | 'missingFunction'

/** A CESQL expression that cannot be compiled; the message says what is wrong and at which character. */
export class CesqlParseError extends Error {
  override readonly name = 'CesqlParseError'
  readonly kind: CesqlParseErrorKind
  /** Index of the offending character, from 0. */
  readonly at: number

  constructor(message: string, at: number, kind: CesqlParseErrorKind = 'parse') {
    super(`${message} (at character ${at + 1})`)
    this.kind = kind
    this.at = at
  }
}

/** A routing table that cannot be used, with everything that is wrong with it. */
export class RoutingTableError extends Error {
  override readonly name = 'RoutingTableError'
  /** One line each; a line about an entry begins with its index, from 0. */
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(`the routing table is not valid: ${problems.join('; ')}`)
    this.problems = problems
  }
}
