import type { BrokerHandle, Message, MessageInput } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import { isJsonObject, readJson } from '@signalbox/http-kit/internal'

/** Returns the channel for a stream's events, from the agent's node to the caller's. */
export function streamChannel(streamId: string): string {
  return `_AGENTS_.stream/${streamId}`
}

/** Returns the channel on which the caller's node grants credit and cancels. */
export function controlChannel(streamId: string): string {
  return `_AGENTS_.stream/${streamId}/control`
}

/** The end of a stream; a number is the code of an error that Signalbox raised. */
export type EndMark = 'done' | 'error' | number

/** A message on a stream's channel: the text of server-sent events as the caller gets it. */
export interface StreamFrame {
  readonly kind: 'frame'
  /** 1, 2, 3 … for each stream. */
  readonly number: number
  /** One or more whole events, or a part of an event that is too large for one frame. */
  readonly body: Uint8Array
  /** True if the event continues in the next frame. */
  readonly more: boolean
  /** True if credit is wanted as soon as the caller has read this frame, not only at half a window. */
  readonly ask: boolean
  /** True if the event whose parts came before stays incomplete: drop them. This frame is not a part of it. */
  readonly cut: boolean
  /** Set on the last frame of the stream, which ends with the terminal event. */
  readonly end: EndMark | undefined
}

/** A periodic message that shows that the agent's node still relays the stream. */
export interface Heartbeat {
  readonly kind: 'heartbeat'
  /** The number of the last frame sent, so that the loss of the last frames is detected as well. */
  readonly last: number
  /** True if the agent has sent bytes, such as a comment, since the last message. */
  readonly alive: boolean
  /** True if the agent's node does not relay the stream any more, although it is not over. */
  readonly isLeft?: boolean
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

export function encodeHeartbeat({ last, alive, isLeft }: Omit<Heartbeat, 'kind'>): MessageInput {
  const tags = { beat: String(last), ...(alive ? { alive: '1' } : {}), ...(isLeft === true ? { left: '1' } : {}) }
  return { body: NO_BODY, tags }
}

/** Decodes a message on a stream's channel. Undefined for another version's message: only Signalbox publishes here. */
export function decodeFrame({ body, tags }: Pick<Message, 'body' | 'tags'>): StreamFrame | Heartbeat | undefined {
  const { n, beat, alive, left, more, ask, cut, end } = tags
  if (n !== undefined) {
    const number = Number(n)
    return { kind: 'frame', number, body, more: more === '1', ask: ask === '1', cut: cut === '1', end: decodeEnd(end) }
  }
  if (beat === undefined) return undefined
  return { kind: 'heartbeat', last: Number(beat), alive: alive === '1', isLeft: left === '1' }
}

function decodeEnd(end: string | undefined): EndMark | undefined {
  if (end === undefined || end === 'done' || end === 'error') return end
  return Number(end)
}

/** A grant of credit by the caller's node. Cumulative: the next grant replaces a lost one. */
export interface CreditGrant {
  readonly kind: 'credit'
  /** The number of the last frame that the caller has read. */
  readonly consumed: number
  /** The bytes that may be in transit after that frame. */
  readonly windowBytes: number
}

export interface Cancel {
  readonly kind: 'cancel'
}

export function encodeCredit(consumed: number, windowBytes: number): MessageInput {
  return { body: encodeText(`{"consumed":${consumed},"window_bytes":${windowBytes}}`) }
}

/** Decodes a control message; undefined if it is neither a grant nor a cancel. */
export function decodeControl({ body }: Pick<Message, 'body'>): CreditGrant | Cancel | undefined {
  const json = readJson(decodeText(body) ?? '')
  if (!isJsonObject(json?.value)) return undefined
  const { cancel, consumed, window_bytes: windowBytes } = json.value
  if (cancel === true) return { kind: 'cancel' }
  if (typeof consumed !== 'number' || typeof windowBytes !== 'number') return undefined
  return { kind: 'credit', consumed, windowBytes }
}

const CANCEL: MessageInput = Object.freeze({ body: encodeText('{"cancel":true}') })

/**
 * Ends a stream on the node that relays it. Has no effect on a stream that is over or never existed.
 * @throws BrokerError ENGINE_UNAVAILABLE
 */
export async function publishStreamCancel(system: BrokerHandle, streamId: string): Promise<void> {
  await system.events.publish(controlChannel(streamId), CANCEL)
}
