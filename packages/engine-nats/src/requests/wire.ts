import type { OutgoingMessage, Reply } from '@signalbox/broker-core/engine'
import { Buffer } from 'node:buffer'

import type { MessageEnvelope } from '../envelope.ts'
import { decodeEnvelope, encodeEnvelope, numberField, textField } from '../envelope.ts'

/** A request on its way to a subscriber. */
export interface RequestOnWire {
  readonly envelope: MessageEnvelope
  /** Milliseconds since the epoch, by the requester's clock. */
  readonly sentAt: number
  /** The time-out since the request was first sent, in milliseconds. */
  readonly timeoutMs: number
  /** The remaining time when the request was sent this time, in milliseconds. */
  readonly leftMs: number
}

export function encodeRequest(
  channel: string,
  { id, clientId, metadata, tags, body }: OutgoingMessage,
  sentAt: number,
  timeoutMs: number,
): Uint8Array {
  const fields = { at: sentAt, timeout: timeoutMs, left: Math.max(1, sentAt + timeoutMs - Date.now()) }
  return encodeEnvelope({ id, clientId, channel, metadata, tags, fields, body })
}

export function decodeRequest(data: Uint8Array): RequestOnWire | undefined {
  const envelope = decodeEnvelope(data)
  return (
    envelope && {
      envelope,
      sentAt: numberField(envelope, 'at'),
      timeoutMs: numberField(envelope, 'timeout'),
      leftMs: numberField(envelope, 'left'),
    }
  )
}

/**
 * A message of a subscriber's node: it has accepted the request, is still working on it, cannot accept it,
 * or the answer.
 */
export type RequestAnswer =
  | { readonly kind: 'accepted' | 'working' | 'gone'; readonly node: string }
  | { readonly kind: 'reply'; readonly node: string; readonly reply: Reply }

const SIGNS = { accepted: 'a', working: 'w', gone: 'g', reply: 'r' } as const

export function encodeSign(kind: 'accepted' | 'working' | 'gone', node: string): Uint8Array {
  return Buffer.from(`${SIGNS[kind]}${node}`)
}

export function encodeReply(node: string, { executed, error, body, metadata, tags }: Reply): Uint8Array {
  const fields = { node, executed: executed ? 1 : 0, error }
  const envelope = encodeEnvelope({ id: '', clientId: '', channel: '', metadata, tags, fields, body })
  return Buffer.concat([Buffer.from(SIGNS.reply), envelope])
}

export function decodeAnswer(data: Uint8Array): RequestAnswer | undefined {
  const sign = String.fromCharCode(data[0] ?? 0)
  if (sign === SIGNS.reply) {
    const envelope = decodeEnvelope(data.subarray(1))
    if (!envelope) return undefined
    const { body, metadata, tags } = envelope
    const executed = numberField(envelope, 'executed') === 1
    const reply = { executed, error: textField(envelope, 'error'), body, metadata, tags }
    return { kind: 'reply', node: textField(envelope, 'node'), reply }
  }
  const node = Buffer.from(data.subarray(1)).toString()
  if (sign === SIGNS.accepted) return { kind: 'accepted', node }
  if (sign === SIGNS.working) return { kind: 'working', node }
  if (sign === SIGNS.gone) return { kind: 'gone', node }
  return undefined
}
