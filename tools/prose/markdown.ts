import type { Fragment } from './passage.ts'
import { Passage } from './passage.ts'

const FENCE = /^\s*(?<mark>`{3,}|~{3,})/
const HEADING = /^#{1,6}\s+/
const LIST_MARKER = /^(?<indent>\s*)(?:[-*+]|\d+[.)])\s+/
const CELL = /(?:\\\||[^|])+/g

/** Returns the prose of a Markdown file: paragraphs, list items, headings and table cells, without code blocks and HTML comments. */
export function markdownPassages(source: string): Passage[] {
  const passages: Passage[] = []
  let paragraph: Fragment[] = []
  let fence: string | undefined
  let inComment = false
  let inList = false

  function endParagraph(): void {
    if (paragraph.length > 0) passages.push(new Passage('paragraph', paragraph))
    paragraph = []
  }

  for (const [index, raw] of source.split('\n').entries()) {
    const line = index + 1
    const mark = FENCE.exec(raw)?.groups?.['mark']
    if (fence !== undefined) {
      if (mark?.startsWith(fence) === true) fence = undefined
      continue
    }
    if (inComment || /^\s*<!--/.test(raw)) {
      endParagraph()
      inComment = !raw.includes('-->')
      continue
    }
    if (mark !== undefined) {
      endParagraph()
      fence = mark
      continue
    }
    const quote = /^\s*(?:>\s?)*/.exec(raw)?.[0] ?? ''
    const text = raw.slice(quote.length)
    if (text.trim() === '') {
      endParagraph()
      continue
    }
    const item = LIST_MARKER.exec(raw)
    if (paragraph.length === 0 && item === null && !inList && /^ {4}/.test(raw)) continue
    if (HEADING.test(text)) {
      endParagraph()
      inList = false
      passages.push(new Passage('heading', [trimmed(raw, line, quote.length + (HEADING.exec(text)?.[0].length ?? 0))]))
    } else if (text.startsWith('|')) {
      endParagraph()
      for (const cell of raw.matchAll(CELL)) {
        if (/[^\s:-]/.test(cell[0])) passages.push(new Passage('cell', [trimmed(cell[0], line, 0, cell.index)]))
      }
    } else if (item === null) {
      if (paragraph.length === 0 && !/^\s/.test(raw)) inList = false
      paragraph.push(trimmed(raw, line, quote.length))
    } else {
      endParagraph()
      inList = true
      paragraph.push(trimmed(raw, line, item[0].length))
    }
  }
  endParagraph()
  return passages
}

/** Returns the part of `raw` from `from` on, without white space around it. `offset` is the column, from 0, at which `raw` starts. */
function trimmed(raw: string, line: number, from: number, offset = 0): Fragment {
  const rest = raw.slice(from)
  const text = rest.trimStart()
  return { line, column: offset + from + (rest.length - text.length) + 1, text: text.trimEnd() }
}
