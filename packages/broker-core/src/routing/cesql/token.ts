import { CesqlParseError } from '../errors.ts'

const KEYWORDS = ['AND', 'OR', 'XOR', 'NOT', 'LIKE', 'IN', 'EXISTS', 'TRUE', 'FALSE'] as const
const SYMBOLS = ['<=', '>=', '<>', '!=', '=', '<', '>', '(', ')', ',', '+', '-', '*', '/', '%'] as const

type Keyword = (typeof KEYWORDS)[number]
type SymbolText = (typeof SYMBOLS)[number]

export type TokenKind = Keyword | SymbolText | 'word' | 'integer' | 'string' | 'end'

export interface Token {
  readonly kind: TokenKind
  /** The word as written, the digits, or the text of a string without quotes and escapes. */
  readonly text: string
  /** The index of its first character. */
  readonly at: number
}

const KEYWORD = new Map<string, Keyword>(KEYWORDS.map((keyword) => [keyword, keyword]))
const SYMBOL = new Map<string, SymbolText>(SYMBOLS.map((symbol) => [symbol, symbol]))

// No two alternatives begin with the same character, so that the expression never tries a character twice.
const TOKEN =
  /(?<blank>[ \t\r\n]+)|(?<word>[A-Za-z0-9_]+)|(?<string>'(?:[^'\\]|\\[^])*'|"(?:[^"\\]|\\[^])*")|(?<symbol>[<>]=|<>|!=|[=<>(),+\-*/%])/y

/** Splits an expression into tokens; the last one is `end`. Keywords are case-insensitive. @throws CesqlParseError */
export function tokenize(expression: string): readonly Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < expression.length) {
    TOKEN.lastIndex = at
    const groups = TOKEN.exec(expression)?.groups
    if (!groups) throw unknown(expression, at)
    const { word, string, symbol } = groups
    if (word !== undefined) tokens.push(wordToken(word, at))
    else if (string !== undefined) tokens.push({ kind: 'string', text: unquote(string), at })
    else if (symbol !== undefined) tokens.push({ kind: SYMBOL.get(symbol) ?? 'end', text: symbol, at })
    at = TOKEN.lastIndex
  }
  tokens.push({ kind: 'end', text: '', at })
  return tokens
}

function wordToken(text: string, at: number): Token {
  const keyword = KEYWORD.get(text.toUpperCase())
  if (keyword) return { kind: keyword, text, at }
  return { kind: /^\d+$/.test(text) ? 'integer' : 'word', text, at }
}

/**
 * Removes quotes and escapes. A backslash escapes only the quote around the string; before other characters it is a
 * literal backslash.
 */
function unquote(source: string): string {
  const quote = source.charAt(0)
  return source.slice(1, -1).replaceAll(`\\${quote}`, quote)
}

function unknown(expression: string, at: number): CesqlParseError {
  const char = String.fromCodePoint(expression.codePointAt(at) ?? 0)
  if (char === "'" || char === '"') return new CesqlParseError(`a string that begins with ${char} does not end`, at)
  return new CesqlParseError(`unexpected character ${JSON.stringify(char)}`, at)
}
