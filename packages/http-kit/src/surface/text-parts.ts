import { Buffer, isUtf8 } from 'node:buffer'

import { allSteps, fairTurns } from './fair-turns.ts'
import type { Steps } from './fair-turns.ts'
import type { HttpResponse } from './http-message.ts'

/** The most bytes that are escaped or encoded at once: a millisecond of work. A multiple of 3, for base64. */
const PIECE_BYTES = 49_152

/** The most bytes whose escapes are counted at once: a millisecond of work. */
const COUNTED_BYTES = 786_432

/** The most characters that are encoded at once: a millisecond of work. */
const ENCODED_CHARACTERS = 786_432

/** A tag or metadata of more characters is escaped in pieces. */
const LONG_CHARACTERS = 4_096

/** The number of JSON strings around a text. */
type Level = 0 | 1 | 2

/** The most bytes of an escape, rounded up to a power of 2. */
const STRIDE = 8

/** The bytes in a JSON string: the size of each, and its escape at the index `byte * STRIDE`. */
interface Escapes {
  readonly sizes: Uint8Array
  readonly texts: Uint8Array
}

/** UTF-8 of other characters is not escaped, so a byte in it is its own escape. */
function escapesOf(level: Level): Escapes {
  const sizes = new Uint8Array(256)
  const texts = new Uint8Array(256 * STRIDE)
  for (let byte = 0; byte < 256; byte++) {
    let text = String.fromCharCode(byte)
    for (let i = 0; i < level; i++) text = JSON.stringify(text).slice(1, -1)
    sizes[byte] = text.length
    texts.set(Buffer.from(text, 'latin1'), byte * STRIDE)
  }
  return { sizes, texts }
}

const ESCAPES: Readonly<Record<Level, Escapes>> = { 0: escapesOf(0), 1: escapesOf(1), 2: escapesOf(2) }

/** Bytes that are a value in a JSON text: as a string if they are UTF-8, and otherwise in base64. */
export class LongBytes {
  readonly bytes: Uint8Array
  readonly isText: boolean

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.isText = isUtf8(bytes)
  }
}

interface Part {
  readonly bytes: Uint8Array
  readonly level: Level
  readonly base64: boolean
}

/** Parts that are chosen when the text is counted or written, because the choice is dear. */
class LaterParts {
  /** The bytes that the parts keep in memory. */
  readonly heldBytes: number
  readonly #choose: () => Steps<readonly Part[]>
  #parts: readonly Part[] | undefined

  constructor(heldBytes: number, choose: () => Steps<readonly Part[]>) {
    this.heldBytes = heldBytes
    this.#choose = choose
  }

  *parts(): Steps<readonly Part[]> {
    this.#parts ??= yield* this.#choose()
    return this.#parts
  }

  quoted(): LaterParts {
    return new LaterParts(this.heldBytes, () => quotedParts(this))
  }
}

function* quotedParts(later: LaterParts): Steps<readonly Part[]> {
  return (yield* later.parts()).map(quotedPart)
}

function quotedPart({ bytes, level, base64 }: Part): Part {
  return { bytes, level: level === 0 ? 1 : 2, base64 }
}

const NO_BYTES = new Uint8Array(0)

/**
 * A long text in parts. Bodies of messages stay the bytes that they are, and are escaped a piece at a time when the
 * text is written: ten megabytes of control characters become 70 megabytes in the result of a tool.
 */
export class TextParts {
  readonly #parts: (Part | LaterParts)[] = []
  /** Short texts, until a longer part follows. */
  #short = ''

  /**
   * Returns a text that is made when it is counted or written, a piece of work at a time.
   * @param heldBytes The bytes that the text keeps in memory
   */
  static later(heldBytes: number, make: () => Steps<TextParts>): TextParts {
    const text = new TextParts()
    const choose = function* (): Steps<readonly Part[]> {
      const made = yield* make()
      return yield* made.#chosen()
    }
    text.#parts.push(new LaterParts(heldBytes, choose))
    return text
  }

  /** Returns a text that is encoded when it is written, a piece of work at a time. */
  static of(text: string): TextParts {
    return TextParts.later(text.length, function* () {
      const parts = new TextParts()
      for (let at = 0; at < text.length;) {
        let end = at + ENCODED_CHARACTERS
        // A surrogate pair is one character in UTF-8.
        if (isLowSurrogate(text.charCodeAt(end))) end++
        parts.add(Buffer.from(text.slice(at, end)))
        at = end
        yield
      }
      return parts
    })
  }

  /**
   * Returns a value as JSON. {@link LongBytes}, long strings and texts in parts are JSON strings, which are escaped when
   * the text is written.
   */
  static json(value: unknown): TextParts {
    const text = new TextParts()
    text.#value(value)
    return text
  }

  #value(value: unknown): void {
    if (value instanceof LongBytes) this.#quoted(value.bytes, !value.isText)
    else if (typeof value === 'string' && value.length > LONG_CHARACTERS) this.#quoted(Buffer.from(value), false)
    else if (value instanceof TextParts) this.addQuoted(value)
    else if (Array.isArray(value)) {
      this.add('[')
      for (const [i, element] of value.entries()) {
        if (i > 0) this.add(',')
        this.#value(element)
      }
      this.add(']')
    } else if (typeof value === 'object' && value !== null) {
      this.add('{')
      let comma = ''
      for (const [key, member] of Object.entries(value)) {
        if (member === undefined) continue
        this.add(comma)
        this.#value(key)
        this.add(':')
        this.#value(member)
        comma = ','
      }
      this.add('}')
    } else this.add(JSON.stringify(value) ?? 'null')
  }

  #quoted(bytes: Uint8Array, base64: boolean): void {
    this.add('"')
    this.#flush()
    this.#parts.push({ bytes, level: 1, base64 })
    this.add('"')
  }

  #flush(): void {
    if (this.#short === '') return
    this.#parts.push({ bytes: Buffer.from(this.#short), level: 0, base64: false })
    this.#short = ''
  }

  /** Appends a text unchanged. Many short texts are encoded together, when they are as long as a piece. */
  add(text: string | Uint8Array | TextParts): this {
    if (typeof text === 'string') {
      this.#short += text
      if (this.#short.length >= PIECE_BYTES) this.#flush()
      return this
    }
    this.#flush()
    if (text instanceof TextParts) this.#parts.push(...text.#all())
    else this.#parts.push({ bytes: text, level: 0, base64: false })
    return this
  }

  /** Appends bytes in base64. */
  addBase64(bytes: Uint8Array): this {
    this.#flush()
    this.#parts.push({ bytes, level: 1, base64: true })
    return this
  }

  #all(): readonly (Part | LaterParts)[] {
    this.#flush()
    return this.#parts
  }

  *#chosen(): Steps<readonly Part[]> {
    const chosen: Part[] = []
    for (const part of this.#all()) {
      if (part instanceof LaterParts) chosen.push(...(yield* part.parts()))
      else chosen.push(part)
    }
    return chosen
  }

  /** Appends a text as a JSON string. A text that has quoted parts can be quoted once. */
  addQuoted(text: string | TextParts): this {
    this.add('"')
    this.#flush()
    if (typeof text === 'string') this.#parts.push({ bytes: Buffer.from(text), level: 1, base64: false })
    else {
      for (const part of text.#all()) this.#parts.push(part instanceof LaterParts ? part.quoted() : quotedPart(part))
    }
    return this.add('"')
  }

  /** The text as a string if it is short and has no other parts. */
  get shortest(): string | TextParts {
    return this.#parts.length === 0 ? this.#short : this
  }

  get isEmpty(): boolean {
    return this.#short === '' && this.#parts.length === 0
  }

  /** The bytes that the text keeps in memory until it is written. */
  get heldBytes(): number {
    return this.#all().reduce((sum, part) => sum + ('bytes' in part ? part.bytes.byteLength : part.heldBytes), 0)
  }

  /** The bytes of the text. A long text is better counted in pieces, by {@link count}. */
  get byteLength(): number {
    return allSteps(this.count())
  }

  /** Counts the bytes of the text, with a pause after each piece of work. The value of the generator is the count. */
  *count(): Steps<number> {
    let size = 0
    let work = 0
    for (const { bytes, level, base64 } of yield* this.#chosen()) {
      if (base64) size += Math.ceil(bytes.byteLength / 3) * 4
      else if (level === 0) size += bytes.byteLength
      else {
        for (let at = 0; at < bytes.byteLength; at += COUNTED_BYTES) {
          const piece = bytes.subarray(at, at + COUNTED_BYTES)
          size += escapedSize(piece, level)
          work += piece.byteLength
          if (work < COUNTED_BYTES) continue
          work = 0
          yield
        }
      }
    }
    return size
  }

  /** Returns the text in UTF-8, in pieces. Each is a millisecond of work; some are empty. */
  *pieces(): Generator<Uint8Array, void, undefined> {
    const choosing = this.#chosen()
    let step = choosing.next()
    for (; step.done !== true; step = choosing.next()) yield NO_BYTES
    let gathered: Uint8Array[] = []
    let size = 0
    for (const part of step.value) {
      for (let at = 0; at < part.bytes.byteLength; at += PIECE_BYTES) {
        const piece = encoded(part.bytes.subarray(at, at + PIECE_BYTES), part)
        gathered.push(piece)
        size += piece.byteLength
        if (size < PIECE_BYTES) continue
        yield gathered.length === 1 ? piece : Buffer.concat(gathered, size)
        gathered = []
        size = 0
      }
    }
    if (size > 0) yield Buffer.concat(gathered, size)
  }

  /** Returns the whole text. */
  toString(): string {
    return Buffer.concat([...this.pieces()]).toString()
  }
}

/** `false` for NaN, past the end of a text. */
function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff
}

/** Returns the size of a text in a JSON string, without the quotes. */
export function escapedSize(bytes: Uint8Array, level: Level = 1): number {
  const { sizes } = ESCAPES[level]
  let size = 0
  // An index is several times faster than an iterator here.
  for (let i = 0; i < bytes.length; i++) size += sizes[bytes[i] ?? 0] ?? 0
  return size
}

function encoded(bytes: Uint8Array, { level, base64 }: Part): Uint8Array {
  if (base64) return Buffer.from(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'))
  if (level === 0) return bytes
  const size = escapedSize(bytes, level)
  if (size === bytes.byteLength) return bytes
  const { sizes, texts } = ESCAPES[level]
  const out = Buffer.allocUnsafe(size)
  let at = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0
    const from = byte * STRIDE
    const end = from + (sizes[byte] ?? 0)
    for (let j = from; j < end; j++) out[at++] = texts[j] ?? 0
  }
  return out
}

/** Texts from this size on are written in pieces, in bytes. */
export const LONG_TEXT_BYTES = 16_384

/** A response to a long text. */
export interface LongAnswer {
  readonly response: HttpResponse
  /** The key of the caller's account. Its long answers take turns with those of others. */
  readonly account: string
  /** Called when the reader has not read the bytes that were written. */
  readonly onUnread: () => void
}

/** Counts the bytes of a long text, a piece at a time, as the account is served. */
export async function countInTurns(text: TextParts, { account, response }: LongAnswer): Promise<number> {
  const counting = text.count()
  for (;;) {
    const step = await fairTurns.turn(account, () => (response.destroyed ? { done: true, value: 0 } : counting.next()))
    if (step.done === true) return step.value ?? 0
  }
}

/**
 * Writes a long text except for its last piece, a piece at a time, as the account is served, as the reader reads. Returns the
 * last piece, or `undefined` if the client has disconnected.
 */
export async function writeInTurns(text: TextParts, answer: LongAnswer): Promise<Uint8Array | undefined> {
  const { account, onUnread, response } = answer
  const pieces = text.pieces()
  let wake: (() => void) | undefined
  const onChange = (): void => wake?.()
  response.on('drain', onChange)
  response.on('close', onChange)
  let piece: Uint8Array | undefined
  for (;;) {
    const { done = false, value } = await fairTurns.turn(account, () => pieces.next())
    if (response.destroyed) return undefined
    if (done || value === undefined) return piece ?? new Uint8Array(0)
    if (piece !== undefined && !response.write(piece)) {
      await new Promise<void>((resolve) => {
        wake = resolve
        onUnread()
      })
      if (response.destroyed) return undefined
    }
    piece = value
  }
}
