import ts from 'typescript'

import type { Fragment, PassageKind } from './passage.ts'
import { Passage } from './passage.ts'

interface Comment {
  readonly start: number
  readonly end: number
}

/** Returns the prose of a TypeScript or JavaScript file: its comments, doc comments, and string literals of three words or more. */
export function typescriptPassages(path: string, source: string): Passage[] {
  const file = ts.createSourceFile(path, source, {
    languageVersion: ts.ScriptTarget.Latest,
    jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
  })
  const literals: ts.Node[] = []
  const exported = new Set<number>()
  const visit = (node: ts.Node, isPublic: boolean): void => {
    if (isLiteral(node)) literals.push(node)
    if (isPublic) {
      for (const { pos } of ts.getLeadingCommentRanges(source, node.pos) ?? []) exported.add(pos)
    }
    ts.forEachChild(node, (child) => visit(child, isPublic && !ts.isBlock(child) && !isPrivate(child)))
  }
  const names = exportedNames(file)
  for (const statement of file.statements) visit(statement, isExported(statement, names))

  const spans = literals.filter((node) => !ts.isTemplateExpression(node))
  const comments = commentsBetween(
    source,
    spans.map((node) => ({ start: node.getStart(file), end: node.end })),
  )
  return [
    ...mergeLines(source, comments).map((comment) => commentPassage(file, source, comment, exported)),
    ...literals.flatMap((node) => literalPassage(file, source, node)),
  ]
}

function isLiteral(node: ts.Node): boolean {
  return (
    ts.isStringLiteral(node) ||
    ts.isNoSubstitutionTemplateLiteral(node) ||
    ts.isTemplateExpression(node) ||
    ts.isTemplateHead(node) ||
    ts.isTemplateMiddleOrTemplateTail(node) ||
    ts.isRegularExpressionLiteral(node)
  )
}

function isPrivate(node: ts.Node): boolean {
  if (!ts.isClassElement(node)) return false
  if (node.name !== undefined && ts.isPrivateIdentifier(node.name)) return true
  return hasModifier(node, ts.SyntaxKind.PrivateKeyword)
}

function hasModifier(node: ts.Node, kind: ts.SyntaxKind): boolean {
  return ts.canHaveModifiers(node) && ts.getModifiers(node)?.some((modifier) => modifier.kind === kind) === true
}

/** Returns the names in `export { … }` statements that export declarations of the file itself. */
function exportedNames(file: ts.SourceFile): ReadonlySet<string> {
  const names = new Set<string>()
  for (const statement of file.statements) {
    if (!ts.isExportDeclaration(statement) || statement.moduleSpecifier !== undefined) continue
    if (statement.exportClause === undefined || !ts.isNamedExports(statement.exportClause)) continue
    for (const { name, propertyName } of statement.exportClause.elements) names.add((propertyName ?? name).text)
  }
  return names
}

function isExported(statement: ts.Statement, names: ReadonlySet<string>): boolean {
  if (hasModifier(statement, ts.SyntaxKind.ExportKeyword)) return true
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.some(({ name }) => ts.isIdentifier(name) && names.has(name.text))
  }
  return ts.isDeclarationStatement(statement) && statement.name !== undefined && names.has(statement.name.text)
}

/** Finds the comments outside the literals. Between literals nothing but a comment contains `//` or `/*`. */
function commentsBetween(source: string, literals: readonly Comment[]): Comment[] {
  const comments: Comment[] = []
  const ordered = literals.toSorted((a, b) => a.start - b.start)
  let at = 0
  let next = 0
  while (at < source.length) {
    const start = Math.min(...[source.indexOf('//', at), source.indexOf('/*', at)].filter((found) => found !== -1))
    if (start === Infinity) break
    while ((ordered[next]?.end ?? Infinity) <= start) next += 1
    const literal = ordered[next]
    if (literal !== undefined && literal.start <= start) {
      at = literal.end
      continue
    }
    const close = source.startsWith('//', start) ? source.indexOf('\n', start) : source.indexOf('*/', start) + 2
    const end = close <= 1 ? source.length : close
    comments.push({ start, end })
    at = end
  }
  return comments
}

/** Joins line comments on consecutive lines to one comment. */
function mergeLines(source: string, comments: readonly Comment[]): Comment[] {
  const merged: Comment[] = []
  for (const comment of comments) {
    const last = merged.at(-1)
    const follows =
      last !== undefined &&
      source.startsWith('//', last.start) &&
      source.startsWith('//', comment.start) &&
      /^\n[ \t]*$/.test(source.slice(last.end, comment.start))
    if (follows) merged[merged.length - 1] = { start: last.start, end: comment.end }
    else merged.push(comment)
  }
  return merged
}

function commentPassage(file: ts.SourceFile, source: string, comment: Comment, exported: ReadonlySet<number>): Passage {
  const text = source.slice(comment.start, comment.end)
  const kind: PassageKind = text.startsWith('/**') ? 'doc comment' : 'comment'
  return new Passage(
    kind,
    fragments(file, text, comment.start, /^\s*(?:\/\*+|\*(?!\/)|\/\/+)?\s*/),
    exported.has(comment.start),
  )
}

function literalPassage(file: ts.SourceFile, source: string, node: ts.Node): Passage[] {
  if (ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node) || ts.isRegularExpressionLiteral(node))
    return []
  const start = node.getStart(file) + 1
  let text = source.slice(start, node.end - 1)
  if (ts.isTemplateExpression(node)) {
    for (const { expression } of node.templateSpans) {
      const from = expression.pos - 2 - start
      const to = expression.end + 1 - start
      text = text.slice(0, from) + text.slice(from, to).replaceAll(/[^\n]/g, '_') + text.slice(to)
    }
  }
  if (!/[A-Za-z_,] +[A-Za-z_]+ +[A-Za-z_]/.test(text)) return []
  return [new Passage('literal', fragments(file, text, start, /^\s*/))]
}

/** Splits a comment or a literal into its lines, without their indentation and comment marks. */
function fragments(file: ts.SourceFile, text: string, start: number, margin: RegExp): Fragment[] {
  const found: Fragment[] = []
  let offset = start
  for (const line of text.split('\n')) {
    const skipped = margin.exec(line)?.[0].length ?? 0
    const place = file.getLineAndCharacterOfPosition(offset + skipped)
    found.push({
      line: place.line + 1,
      column: place.character + 1,
      text: line.slice(skipped).replace(/\s*(?:\*\/)?\s*$/, ''),
    })
    offset += line.length + 1
  }
  return found
}
