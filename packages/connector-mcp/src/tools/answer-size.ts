import { Buffer } from 'node:buffer'

import type { MessageContent, ResultLimit } from '@signalbox/broker-core'
import { answerBound, LONG_TEXT_BYTES, longMessageShape, messageShape, TextParts } from '@signalbox/http-kit/internal'

import type { ToolContext, ToolOutcome } from './tool.ts'

/** The size of the text of one result after which no further message is added, in bytes. */
export const DEFAULT_MAX_ANSWER_BYTES = 262_144

/** The limit on the messages of one result. */
export class AnswerLimit {
  readonly #maxBytes: number
  readonly #hold: ToolContext['hold']
  #isReached = false

  constructor({ maxAnswerBytes, hold }: Pick<ToolContext, 'maxAnswerBytes' | 'hold'>) {
    this.#maxBytes = maxAnswerBytes
    this.#hold = hold
  }

  /** Limits a read to the messages that fit. Waits for the caller's earlier dear work: read at once after it. */
  bound(): Promise<ResultLimit> {
    return answerBound(this.#maxBytes, this.#hold, () => (this.#isReached = true))
  }

  /**
   * Returns the note that messages are missing; `undefined` if all are here.
   * @param count The number of messages in the result
   * @param asked The number of messages that the caller asked for
   * @param remedy A sentence that says how to get the others
   */
  rest(count: number, asked: number, remedy: string): ResultNote | undefined {
    if (!this.#isReached) return undefined
    const left = asked - count
    return {
      more: true,
      hint: `The text of a result has about ${this.#maxBytes} bytes at most (CONNECTORSMCP_MAX_ANSWER_BYTES), so up to ${left} more ${left === 1 ? 'message is' : 'messages are'} missing here. ${remedy}`,
    }
  }
}

/** A note about the messages of a result. */
export interface ResultNote {
  /** `true` if there are more that do not fit. @default false */
  readonly more?: true
  readonly hint: string
}

/** The note of structured content without bodies. */
const BODIES_ONLY_IN_TEXT =
  'The bodies are large, so they are only in the text of this result. Those of fewer messages may fit here too.'

const BODIES_IN_TEXT = { bodies: 'in text' } as const

/** The most bytes of text and structured content that repeat a body. */
const MAX_REPEATED_BYTES = 65_536

/**
 * Returns messages as a JSON array in the text, and as an object in the structured content. Bodies that are too large
 * to be repeated are in the text only.
 * @param others Returns the further members of a message
 */
export function messagesOutcome<Item extends { readonly message: MessageContent }>(
  name: 'messages' | 'events',
  items: readonly Item[],
  others: (item: Item) => object,
  note?: ResultNote,
): ToolOutcome {
  const hint = note?.hint
  const more = note === undefined ? '' : `,${membersOf(note).slice(1, -1)}`
  if (items.reduce((sum, { message }) => sum + bytesOf(message), 0) < LONG_TEXT_BYTES / 2) {
    const text = JSON.stringify(items.map((item) => ({ ...messageShape(item.message), ...others(item) })))
    return { text, hint, isError: false, structuredContent: `{"${name}":${text}${more}}` }
  }
  const text = TextParts.json(items.map((item) => ({ ...longMessageShape(item.message), ...others(item) })))
  if (fitsTwice(text)) {
    const structuredContent = new TextParts().add(`{"${name}":`).add(text).add(`${more}}`)
    return { text, hint, isError: false, structuredContent }
  }
  const shapes = items.map((item) => {
    const { body: _body, ...rest } = longMessageShape(item.message)
    return { ...rest, ...others(item) }
  })
  const structuredContent = TextParts.json({
    [name]: shapes,
    ...BODIES_IN_TEXT,
    more: note?.more,
    note: note === undefined ? BODIES_ONLY_IN_TEXT : `${note.hint} ${BODIES_ONLY_IN_TEXT}`,
  })
  return { text, hint, isError: false, structuredContent }
}

/** Returns the members that structured content repeats from the hint, for hosts that show nothing else. */
function membersOf({ more, hint }: ResultNote): string {
  return JSON.stringify({ more, note: hint })
}

function bytesOf({ body, metadata, tags }: MessageContent): number {
  let bytes = body.byteLength + metadata.length
  for (const key of Object.keys(tags)) bytes += key.length + (tags[key] ?? '').length
  return bytes
}

/** Returns whether a text is small enough to be repeated in the structured content. */
export function fitsTwice(text: string | TextParts): boolean {
  const length = typeof text === 'string' ? text.length : text.heldBytes
  if (length * 2 > MAX_REPEATED_BYTES) return false
  const bytes = typeof text === 'string' ? Buffer.byteLength(text) : text.byteLength
  return bytes * 2 <= MAX_REPEATED_BYTES
}
