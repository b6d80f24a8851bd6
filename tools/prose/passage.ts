/** Where a passage comes from. Rules choose the kinds they apply to. */
export type PassageKind = 'paragraph' | 'heading' | 'cell' | 'comment' | 'doc comment' | 'literal'

export interface Place {
  readonly line: number
  readonly column: number
}

/** A piece of one source line: `text` starts at `line` and `column`, both counted from 1. */
export interface Fragment extends Place {
  readonly text: string
}

/**
 * A run of prose, joined to one line, so that a phrase is found across line breaks.
 * Code is masked with underscores of the same length.
 */
export class Passage {
  readonly kind: PassageKind
  readonly fragments: readonly Fragment[]
  /** True for the doc comment of an exported declaration. */
  readonly exported: boolean
  readonly text: string
  readonly #starts: readonly number[]

  constructor(kind: PassageKind, fragments: readonly Fragment[], exported = false) {
    this.kind = kind
    this.fragments = fragments
    this.exported = exported
    const starts: number[] = []
    let text = ''
    for (const fragment of fragments) {
      if (text !== '') text += ' '
      starts.push(text.length)
      text += fragment.text
    }
    this.text = maskCode(text)
    this.#starts = starts
  }

  /** Returns the place in the file of the character at `index` of the text. */
  placeOf(index: number): Place {
    const at = this.#starts.findLastIndex((start) => start <= index)
    const fragment = this.fragments[at]
    const start = this.#starts[at]
    if (fragment === undefined || start === undefined) return { line: 1, column: 1 }
    return { line: fragment.line, column: fragment.column + index - start }
  }
}

/** Masks inline code, link targets, addresses and `{@link …}` tags. */
function maskCode(text: string): string {
  return text
    .replaceAll(/(`+)(?!`).*?(?<!`)\1(?!`)/g, mask)
    .replaceAll(/(?<=\])\([^)\s]*\)/g, mask)
    .replaceAll(/\bhttps?:\/\/[^\s)>]+/g, mask)
    .replaceAll(/\{@link [^}]*\}/g, mask)
}

function mask(code: string): string {
  return '_'.repeat(code.length)
}

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
