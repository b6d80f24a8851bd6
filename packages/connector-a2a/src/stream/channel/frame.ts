import type { Message, MessageInput } from '@signalbox/broker-core'

/** How the stream ended; the number is the code of an error that Signalbox made. */
export type EndMark = 'done' | 'error' | number

/** What travels on a stream's channel: text of server-sent events as the client gets it. */
export interface StreamFrame {
  readonly kind: 'frame'
  /** 1, 2, 3 … for each stream. */
  readonly number: number
  /** One or more whole events; or, of an event too large for one frame, a part. */
  readonly body: Uint8Array
  /** The event goes on in the next frame. */
  readonly more: boolean
  /** Credit is wanted as soon as this frame is taken, not only with half a window. */
  readonly ask: boolean
  /** The event whose parts came before it will not be completed: it is void, and this is no part of it. */
  readonly cut: boolean
  /** The last frame of the stream: it ends with the terminal event. */
  readonly end: EndMark | undefined
}

/** A sign of life. */
export interface Heartbeat {
  readonly kind: 'heartbeat'
  /** The number of the last frame that was sent, so that the loss of the last ones shows as well. */
  readonly last: number
}

const NO_BODY = new Uint8Array(0)

export function encodeFrame({ number, body, more, ask, cut, end }: Omit<StreamFrame, 'kind'>): MessageInput {
  const tags: Record<string, string> = { n: String(number) }
  if (more) tags['more'] = '1'
  if (ask) tags['ask'] = '1'
  if (cut) tags['cut'] = '1'
  if (end !== undefined) tags['end'] = String(end)
  return { body, tags }
}

export function encodeHeartbeat(last: number): MessageInput {
  return { body: NO_BODY, tags: { beat: String(last) } }
}

/** Undefined for a message that is neither: nobody but Signalbox publishes here, so it is from another version. */
export function decodeFrame({ body, tags }: Pick<Message, 'body' | 'tags'>): StreamFrame | Heartbeat | undefined {
  const { n, beat, more, ask, cut, end } = tags
  if (n !== undefined) {
    const number = Number(n)
    return { kind: 'frame', number, body, more: more === '1', ask: ask === '1', cut: cut === '1', end: decodeEnd(end) }
  }
  return beat === undefined ? undefined : { kind: 'heartbeat', last: Number(beat) }
}

function decodeEnd(end: string | undefined): EndMark | undefined {
  if (end === undefined || end === 'done' || end === 'error') return end
  return Number(end)
}
