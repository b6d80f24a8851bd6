import type { Passage, Place } from './passage.ts'
import { markdownPassages } from './passage.ts'
import type { Rule } from './rules.ts'
import { RULES } from './rules.ts'
import { typescriptPassages } from './typescript.ts'

export interface Problem extends Place {
  readonly path: string
  readonly rule: string
  readonly message: string
}

/** A line with this word exempts itself and the next line: `// prose-ignore: the specification fixes this text`. */
const IGNORE = 'prose-ignore'

/** Returns the problems of one file, in the order of the file. `path` is relative to the workspace and chooses the parser. */
export function checkProse(path: string, source: string, rules: readonly Rule[] = RULES): Problem[] {
  const passages = path.endsWith('.md') ? markdownPassages(source) : typescriptPassages(path, source)
  const ignored = ignoredLines(source)
  return passages
    .flatMap((passage) => problemsOf(passage, path, rules))
    .filter(({ line }) => !ignored.has(line))
    .toSorted((a, b) => a.line - b.line || a.column - b.column)
}

function problemsOf(passage: Passage, path: string, rules: readonly Rule[]): Problem[] {
  const problems: Problem[] = []
  for (const { id, message, applies, find } of rules) {
    if (applies?.(passage, path) === false) continue
    for (const { index, found } of find(passage)) {
      problems.push({ path, ...passage.placeOf(index), rule: id, message: `"${found}": ${message}` })
    }
  }
  return problems
}

function ignoredLines(source: string): ReadonlySet<number> {
  const lines = new Set<number>()
  if (!source.includes(IGNORE)) return lines
  for (const [index, line] of source.split('\n').entries()) {
    if (line.includes(IGNORE)) lines.add(index + 1).add(index + 2)
  }
  return lines
}
