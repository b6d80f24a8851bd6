/** The most steps of a compiled pattern. A counted repetition has the steps of its part as often as it may repeat. */
const MAX_STEPS = 1_000
/** The longest expression, in UTF-16 units. A token is at most as long. */
const MAX_LENGTH = 512

/** A part of a pattern: one character of a set, a place between characters, or a combination of parts. */
type Part =
  | { readonly set: (character: string) => boolean }
  | { readonly place: string }
  | { readonly sequence: readonly Part[] }
  | { readonly choices: readonly Part[] }
  | { readonly repeated: Part; readonly min: number; readonly max: number }

/** A step reads a character of a set, holds at a place, or continues at each of `to`. The end is after the last step. */
interface Step {
  readonly set?: (character: string) => boolean
  readonly place?: string
  to: readonly number[]
}

// cspell:ignore gisu
const TOKEN =
  /\\u\{[\da-f]{1,512}\}|\\ud[89ab]..\\ud[c-f]..|\\u....|\\x..|\\c.|\\p\{[^}]{0,512}\}|\\k<|\\.|\[(?:\\.|[^\]\\]){0,512}\]|\(\?:|\(\?<[^=!]|\(\?|\{\d{1,512}(?:,\d{0,512})?\}|./gisu

const PLACES = new Set(['^', '$', '\\b', '\\B'])

/**
 * A regular expression (ECMA-262, with the flag `u`) that takes time in proportion to the text. JavaScript's own engine
 * needs centuries for some expressions, such as `^(a+)+$`. References to groups, lookahead and lookbehind are not supported.
 */
export class LinearPattern {
  readonly #steps: Step[] = []
  /** By step, the last time at which it became active. */
  readonly #marks: Uint32Array
  #time = 0

  /** @throws SyntaxError for an expression that is not valid, not supported or too large */
  constructor(source: string) {
    if (source.length > MAX_LENGTH) throw new SyntaxError(`it has more than ${MAX_LENGTH} characters`)
    // The parser relies on valid syntax.
    void new RegExp(source, 'u')
    this.#add(new PatternParser(source.match(TOKEN) ?? []).choices())
    this.#marks = new Uint32Array(this.#steps.length + 1)
  }

  /**
   * Returns whether the text has a match anywhere.
   * @param spend Gets the number of steps, and may throw to end the search
   */
  test(text: string, spend: (steps: number) => void = () => {}): boolean {
    const characters = Array.from(text)
    const end = this.#steps.length
    /** The steps that may continue before the character, and after it. */
    let before: number[] = [0]
    for (let at = 0; at <= characters.length; at++) {
      const character = characters[at]
      const after: number[] = []
      this.#time = (this.#time + 1) % 0xffff_ffff
      if (this.#time === 0) this.#marks.fill(this.#time++)
      let visited = 0
      for (let index = before.pop(); index !== undefined; index = before.pop()) {
        if (index === end) return true
        if (this.#marks[index] === this.#time) continue
        this.#marks[index] = this.#time
        visited++
        const { set, place, to } = this.#steps[index] ?? { to: [] }
        if (set !== undefined) {
          if (character !== undefined && set(character)) after.push(index + 1)
        } else if (place === undefined || holds(place, characters, at)) before.push(...to)
      }
      spend(visited)
      // A match may begin anywhere.
      after.push(0)
      before = after
    }
    return false
  }

  #push(step: Step): Step {
    if (this.#steps.push(step) > MAX_STEPS) throw new SyntaxError(`it has more than ${MAX_STEPS} steps`)
    return step
  }

  /** Adds the steps of a part. They end at the step that is added next. */
  #add(part: Part): void {
    if ('set' in part) {
      this.#push({ set: part.set, to: [] })
    } else if ('place' in part) {
      this.#push({ place: part.place, to: [this.#steps.length + 1] })
    } else if ('sequence' in part) {
      for (const each of part.sequence) this.#add(each)
    } else if ('choices' in part) {
      this.#addChoices(part.choices)
    } else {
      for (let i = 0; i < part.min; i++) this.#add(part.repeated)
      if (part.max === Infinity) this.#addLoop(part.repeated)
      else for (let i = part.min; i < part.max; i++) this.#addChoices([part.repeated, { sequence: [] }])
    }
  }

  #addChoices(choices: readonly Part[]): void {
    const split = this.#push({ to: [] })
    const starts: number[] = []
    const ends = choices.map((choice) => {
      starts.push(this.#steps.length)
      this.#add(choice)
      return this.#push({ to: [] })
    })
    split.to = starts
    for (const each of ends) each.to = [this.#steps.length]
  }

  #addLoop(part: Part): void {
    const start = this.#steps.length
    const split = this.#push({ to: [] })
    this.#add(part)
    this.#push({ to: [start] })
    split.to = [start + 1, this.#steps.length]
  }
}

class PatternParser {
  readonly #tokens: readonly string[]
  #at = 0

  /** @param tokens Those of a valid expression */
  constructor(tokens: readonly string[]) {
    this.#tokens = tokens
  }

  choices(): Part {
    const choices = [this.#sequence()]
    while (this.#tokens[this.#at] === '|') {
      this.#at++
      choices.push(this.#sequence())
    }
    return { choices }
  }

  #sequence(): Part {
    const sequence: Part[] = []
    for (;;) {
      const token = this.#tokens[this.#at]
      if (token === undefined || token === '|' || token === ')') return { sequence }
      this.#at++
      sequence.push(this.#quantified(this.#part(token)))
    }
  }

  #part(token: string): Part {
    if (token.startsWith('(')) {
      if (token.startsWith('(?<')) while (this.#tokens[this.#at++] !== '>');
      else if (token === '(?') throw new SyntaxError('it has a lookahead, a lookbehind or flags')
      const part = this.choices()
      this.#at++
      return part
    }
    if (/^\\[1-9k]/.test(token)) throw new SyntaxError('it has a reference to a group')
    if (PLACES.has(token)) return { place: token }
    if (/^[^\\[.]/u.test(token)) return { set: (character) => character === token }
    const set = new RegExp(`^${token}$`, 'u')
    return { set: (character) => set.test(character) }
  }

  /** Ignores that a quantifier is lazy: that changes the length of a match only. */
  #quantified(repeated: Part): Part {
    const range = rangeOf(this.#tokens[this.#at])
    if (range === undefined) return repeated
    this.#at++
    if (this.#tokens[this.#at] === '?') this.#at++
    return { repeated, ...range }
  }
}

function rangeOf(token: string | undefined): { readonly min: number; readonly max: number } | undefined {
  if (token === '*') return { min: 0, max: Infinity }
  if (token === '+') return { min: 1, max: Infinity }
  if (token === '?') return { min: 0, max: 1 }
  const [, min, comma, max] = /^\{(\d+)(?:(,)(\d*))?\}$/.exec(token ?? '') ?? []
  if (min === undefined) return undefined
  return { min: Number(min), max: max ? Number(max) : comma ? Infinity : Number(min) }
}

const WORD = /^\w$/

function holds(place: string, characters: readonly string[], at: number): boolean {
  if (place === '^') return at === 0
  if (place === '$') return at === characters.length
  const isEdge = WORD.test(characters[at - 1] ?? '') !== WORD.test(characters[at] ?? '')
  return isEdge === (place === '\\b')
}
