const ONE = -1
const MANY = -2

/**
 * Compiles a LIKE pattern to a matcher: `%` matches any number of characters, `_` one, `\%` and `\_` a literal `%` and
 * `_`; other characters match themselves. Backtracks only to the last `%`, so the time is linear in the text for a
 * given pattern; a regular expression could take exponential time for a text that its sender chose.
 */
export function compileLike(pattern: string): (text: string) => boolean {
  const tokens = parse(pattern)
  return (text) => {
    let at = 0
    let token = 0
    let many = -1
    let resume = 0
    while (at < text.length) {
      const wanted = tokens[token]
      const char = text.codePointAt(at) ?? 0
      if (wanted === MANY) {
        many = token
        resume = at
        token += 1
      } else if (wanted === ONE || wanted === char) {
        at += width(char)
        token += 1
      } else if (many === -1) {
        return false
      } else {
        resume += width(text.codePointAt(resume) ?? 0)
        at = resume
        token = many + 1
      }
    }
    while (tokens[token] === MANY) token += 1
    return token === tokens.length
  }
}

function parse(pattern: string): readonly number[] {
  const tokens: number[] = []
  const chars = Array.from(pattern)
  for (let i = 0; i < chars.length; i += 1) {
    const char = chars[i] ?? ''
    const next = chars[i + 1]
    if (char === '\\' && (next === '%' || next === '_')) {
      tokens.push(code(next))
      i += 1
    } else if (char === '%') {
      if (tokens.at(-1) !== MANY) tokens.push(MANY)
    } else {
      tokens.push(char === '_' ? ONE : code(char))
    }
  }
  return tokens
}

function code(char: string): number {
  return char.codePointAt(0) ?? 0
}

function width(codePoint: number): number {
  return codePoint > 0xffff ? 2 : 1
}
