import { fairTurns } from './fair-turns.ts'
import type { TextParts } from './text-parts.ts'
import type { HttpResponse } from '../http-message.ts'

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
