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
