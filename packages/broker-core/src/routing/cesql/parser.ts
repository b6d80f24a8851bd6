import { CesqlParseError } from '../errors.ts'
import type { Token, TokenKind } from './token.ts'
import { tokenize } from './token.ts'
import type { CesqlValue } from './value.ts'
import { isInteger } from './value.ts'

export type ArithmeticOperator = '+' | '-' | '*' | '/' | '%'
export type EqualityOperator = '=' | '!=' | '<>'
export type OrderOperator = '<' | '<=' | '>' | '>='
export type LogicOperator = 'AND' | 'OR' | 'XOR'
export type BinaryOperator = ArithmeticOperator | EqualityOperator | OrderOperator | LogicOperator

/** A parsed expression. */
export type CesqlNode =
  | { readonly kind: 'literal'; readonly value: CesqlValue }
  | { readonly kind: 'attribute'; readonly name: string }
  | { readonly kind: 'exists'; readonly name: string }
  | { readonly kind: 'not'; readonly operand: CesqlNode }
  | { readonly kind: 'minus'; readonly operand: CesqlNode }
  | { readonly kind: 'binary'; readonly operator: BinaryOperator; readonly left: CesqlNode; readonly right: CesqlNode }
  | { readonly kind: 'like'; readonly operand: CesqlNode; readonly pattern: string; readonly negated: boolean }
  | { readonly kind: 'in'; readonly operand: CesqlNode; readonly set: readonly CesqlNode[]; readonly negated: boolean }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly CesqlNode[]; readonly at: number }

/** The maximum length of an expression, in UTF-16 units. */
const MAX_EXPRESSION_LENGTH = 4096

/** The maximum nesting of parentheses, unary operators and calls. */
const MAX_NESTING = 64

/**
 * The maximum number of binary operators, LIKE and IN in an expression. `a AND b AND …` nests to the left, without
 * another limit.
 */
const MAX_OPERATORS = 500

/**
 * The precedence of the operators (CESQL 3.6); operators of equal precedence group to the left. NOT has the highest, IN
 * a lower one than LIKE.
 */
const LOGIC = 1
const COMPARISON = 2
const SUM = 3
const PRODUCT = 4
const IN = 5
const LIKE = 6
const MINUS = 7
const NOT = 8

const BINARY: ReadonlyMap<TokenKind, { readonly operator: BinaryOperator; readonly power: number }> = new Map(
  (
    [
      [LOGIC, ['AND', 'OR', 'XOR']],
      [COMPARISON, ['=', '!=', '<>', '<', '<=', '>', '>=']],
      [SUM, ['+', '-']],
      [PRODUCT, ['*', '/', '%']],
    ] as const
  ).flatMap(([power, operators]) => operators.map((operator) => [operator, { operator, power }] as const)),
)

const ATTRIBUTE = /^[a-z0-9]+$/
const FUNCTION = /^[A-Za-z][A-Za-z_]*$/

/** Parses a whole expression. @throws CesqlParseError */
export function parse(expression: string): CesqlNode {
  if (expression.length > MAX_EXPRESSION_LENGTH) {
    throw new CesqlParseError(
      `the expression has ${expression.length} characters; at most ${MAX_EXPRESSION_LENGTH} are allowed`,
      MAX_EXPRESSION_LENGTH,
    )
  }
  return new Parser(tokenize(expression)).parse()
}

/** A Pratt parser: {@link #operand} reads the start of an expression, {@link #expression} the operators after it. */
class Parser {
  readonly #tokens: readonly Token[]
  #position = 0
  #depth = 0
  #operators = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  parse(): CesqlNode {
    const node = this.#expression(0)
    if (this.#next.kind !== 'end') throw unexpected(this.#next, 'an operator or the end')
    return node
  }

  get #next(): Token {
    return this.#look(0)
  }

  /** Returns a token after the next one; beyond the end, the `end` token. */
  #look(ahead: number): Token {
    const token = this.#tokens[Math.min(this.#position + ahead, this.#tokens.length - 1)]
    if (!token) throw new CesqlParseError('the expression is empty', 0)
    return token
  }

  #take(): Token {
    const token = this.#next
    this.#position += 1
    return token
  }

  #expect(kind: TokenKind, what: string): Token {
    if (this.#next.kind !== kind) throw unexpected(this.#next, what)
    return this.#take()
  }

  #skip(kind: TokenKind): boolean {
    if (this.#next.kind !== kind) return false
    this.#position += 1
    return true
  }

  /** Reads an expression whose operators all have a higher precedence than `power`. */
  #expression(power: number): CesqlNode {
    this.#depth += 1
    if (this.#depth > MAX_NESTING) {
      throw new CesqlParseError(`the expression nests deeper than ${MAX_NESTING}`, this.#next.at)
    }
    let left = this.#operand()
    for (;;) {
      const more = this.#operator(left, power)
      if (!more) break
      this.#operators += 1
      if (this.#operators > MAX_OPERATORS) {
        throw new CesqlParseError(`the expression has more than ${MAX_OPERATORS} operators`, this.#next.at)
      }
      left = more
    }
    this.#depth -= 1
    return left
  }

  /**
   * Reads the operation that follows `left`; undefined if no operator with a higher precedence than `power` follows.
   */
  #operator(left: CesqlNode, power: number): CesqlNode | undefined {
    const binary = BINARY.get(this.#next.kind)
    if (binary) {
      if (binary.power <= power) return undefined
      this.#position += 1
      return { kind: 'binary', operator: binary.operator, left, right: this.#expression(binary.power) }
    }
    const negated = this.#next.kind === 'NOT'
    const { kind } = negated ? this.#look(1) : this.#next
    if (kind === 'LIKE' && power < LIKE) {
      this.#position += negated ? 2 : 1
      const pattern = this.#expect('string', 'a string, the pattern of LIKE').text
      return { kind: 'like', operand: left, pattern, negated }
    }
    if (kind === 'IN' && power < IN) {
      this.#position += negated ? 2 : 1
      this.#expect('(', '( and the values of IN')
      return { kind: 'in', operand: left, set: this.#list(), negated }
    }
    return undefined
  }

  #operand(): CesqlNode {
    const token = this.#take()
    switch (token.kind) {
      case 'string':
        return { kind: 'literal', value: token.text }
      case 'integer':
        return integer(token, token.text)
      case 'TRUE':
      case 'FALSE':
        return { kind: 'literal', value: token.kind === 'TRUE' }
      case 'word':
        return this.#skip('(') ? this.#call(token) : { kind: 'attribute', name: attribute(token) }
      case 'EXISTS':
        return { kind: 'exists', name: attribute(this.#take()) }
      case '(': {
        const node = this.#expression(0)
        this.#expect(')', 'an operator or )')
        return node
      }
      case 'NOT':
        return { kind: 'not', operand: this.#expression(NOT) }
      case '-':
      case '+':
        return this.#signed(token)
      default:
        throw unexpected(token, 'a value')
    }
  }

  /**
   * Reads a sign and its operand. A sign directly before digits belongs to the literal, because the smallest integer
   * has no positive counterpart.
   */
  #signed(sign: Token): CesqlNode {
    const { kind, at } = this.#next
    if (kind === 'integer' && at === sign.at + 1) return integer(sign, sign.kind + this.#take().text)
    if (sign.kind === '+') throw unexpected(sign, 'a value')
    return { kind: 'minus', operand: this.#expression(MINUS) }
  }

  #call(name: Token): CesqlNode {
    if (!FUNCTION.test(name.text)) {
      throw new CesqlParseError(`${JSON.stringify(name.text)} cannot be the name of a function`, name.at)
    }
    const args = this.#skip(')') ? [] : this.#list()
    return { kind: 'call', name: name.text.toUpperCase(), args, at: name.at }
  }

  /** Reads one or more expressions, separated by commas, and the closing parenthesis. */
  #list(): readonly CesqlNode[] {
    const nodes = [this.#expression(0)]
    while (this.#skip(',')) nodes.push(this.#expression(0))
    this.#expect(')', 'an operator, a comma or )')
    return nodes
  }
}

function integer(token: Token, digits: string): CesqlNode {
  const value = Number(digits) + 0
  if (isInteger(value)) return { kind: 'literal', value }
  throw new CesqlParseError('an integer is outside -2147483648 … 2147483647', token.at)
}

function attribute(token: Token): string {
  const isName = token.kind === 'word' || token.kind === 'integer'
  if (!isName) throw unexpected(token, 'the name of an attribute')
  if (ATTRIBUTE.test(token.text)) return token.text
  throw new CesqlParseError(
    `${JSON.stringify(token.text)} cannot be the name of an attribute: allowed are lower-case letters and digits`,
    token.at,
  )
}

function unexpected(token: Token, wanted: string): CesqlParseError {
  const found = token.kind === 'end' ? 'the expression ends' : `found ${JSON.stringify(token.text)}`
  return new CesqlParseError(`expected ${wanted}, but ${found}`, token.at)
}
