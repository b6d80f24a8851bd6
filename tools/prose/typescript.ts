import type { Comment, Program } from 'oxc-parser'
import { parseSync } from 'oxc-parser'

import type { Fragment, Place } from './passage.ts'
import { Passage } from './passage.ts'

/** A node of the syntax tree, as far as the search for prose needs it. */
interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

/** Returns the prose of a TypeScript or JavaScript file: its comments, doc comments, and string literals of three words or more. */
export function typescriptPassages(path: string, source: string): Passage[] {
  const { program, comments } = parseSync(path, source, { astType: 'ts' })
  const place = placesIn(source)
  const literals: Node[] = []
  const exported = new Set<number>()
  const visit = (node: Node, isPublic: boolean): void => {
    if (node.type === 'TemplateLiteral' || (node.type === 'Literal' && typeof node['value'] === 'string')) {
      literals.push(node)
    }
    if (isPublic) exported.add(node.start)
    for (const child of Object.values(node).flat()) {
      if (isNode(child)) visit(child, isPublic && child.type !== 'BlockStatement' && !isPrivate(child))
    }
  }
  const names = exportedNames(program)
  for (const statement of program.body as unknown as readonly Node[]) visit(statement, isExported(statement, names))
  const merged = mergeLines(source, comments)
  // From the last one to the first: one comment may follow another.
  for (const { start, end } of merged.toReversed()) {
    if (exported.has(end + source.slice(end).search(/\S/))) exported.add(start)
  }
  return [
    ...merged.map(({ start, end }) => {
      const text = source.slice(start, end)
      const lines = fragments(place, text, start, /^\s*(?:\/\*+|\*(?!\/)|\/\/+)?\s*/)
      return new Passage(text.startsWith('/**') ? 'doc comment' : 'comment', lines, exported.has(start))
    }),
    ...literals.flatMap((node) => literalPassage(place, source, node)),
  ]
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value
}

function isPrivate({ key, accessibility }: Node): boolean {
  return (isNode(key) && key.type === 'PrivateIdentifier') || accessibility === 'private'
}

/** Returns the names in `export { … }` statements that export declarations of the file itself. */
function exportedNames({ body }: Program): ReadonlySet<string> {
  return new Set(
    body.flatMap((statement) => {
      if (statement.type !== 'ExportNamedDeclaration' || statement.source !== null) return []
      return statement.specifiers.map(({ local }) => ('name' in local ? local.name : local.value))
    }),
  )
}

function isExported({ type, id, declarations = [] }: Node, names: ReadonlySet<string>): boolean {
  if (type === 'ExportNamedDeclaration' || type === 'ExportDefaultDeclaration') return true
  const ids = [id, ...(declarations as readonly Node[]).map((declaration) => declaration['id'])]
  return ids.some((one) => isNode(one) && names.has(String(one['name'])))
}

/** Joins line comments on consecutive lines to one comment. */
function mergeLines(source: string, comments: readonly Comment[]): readonly Pick<Comment, 'start' | 'end'>[] {
  const merged: Comment[] = []
  for (const comment of comments) {
    const last = merged.at(-1)
    const isLine = last?.type === 'Line' && comment.type === 'Line'
    if (isLine && /^\n[ \t]*$/.test(source.slice(last.end, comment.start))) last.end = comment.end
    else merged.push({ ...comment })
  }
  return merged
}

function literalPassage(place: (offset: number) => Place, source: string, node: Node): Passage[] {
  const start = node.start + 1
  let text = source.slice(start, node.end - 1)
  // The expressions of a template; their marks belong to the texts around them.
  const quasis = (node['quasis'] ?? []) as readonly Node[]
  for (const [i, { end }] of quasis.slice(0, -1).entries()) {
    const [from, to] = [end - 2 - start, (quasis[i + 1]?.start ?? end) + 1 - start]
    text = text.slice(0, from) + text.slice(from, to).replaceAll(/[^\n]/g, '_') + text.slice(to)
  }
  if (!/[A-Za-z_,] +[A-Za-z_]+ +[A-Za-z_]/.test(text)) return []
  return [new Passage('literal', fragments(place, text, start, /^\s*/))]
}

/** Splits a comment or a literal into its lines, without their indentation and comment marks. */
function fragments(place: (offset: number) => Place, text: string, start: number, margin: RegExp): Fragment[] {
  let offset = start
  return text.split('\n').map((content) => {
    const skipped = margin.exec(content)?.[0].length ?? 0
    const { line, column } = place(offset + skipped)
    offset += content.length + 1
    return { line, column, text: content.slice(skipped).replace(/\s*(?:\*\/)?\s*$/, '') }
  })
}

/** Returns a function that finds the line and the column of an offset. */
function placesIn(source: string): (offset: number) => Place {
  const starts = [0, ...Array.from(source.matchAll(/\n/g), ({ index }) => index + 1)]
  return (offset) => {
    const line = starts.findLastIndex((start) => start <= offset)
    return { line: line + 1, column: offset - (starts[line] ?? 0) + 1 }
  }
}
