import type { Reply } from '@signalbox/broker-core/engine'
import { decodeReply, encodeReply } from '@signalbox/broker-core/engine'
import { Buffer } from 'node:buffer'

/**
 * A message of a subscriber's node to the requester: it has accepted the request, is still working on it, cannot accept
 * it, or the answer.
 */
export type RequestAnswer =
  | { readonly kind: 'accepted' | 'working' | 'gone'; readonly node: string }
  | { readonly kind: 'reply'; readonly node: string; readonly reply: Reply }

/** The first byte of each kind. */
const SIGNS = { accepted: 'a', working: 'w', gone: 'g', reply: 'r' } as const

export function encodeAnswer(answer: RequestAnswer): Uint8Array {
  const sign = SIGNS[answer.kind]
  if (answer.kind !== 'reply') return Buffer.from(`${sign}${answer.node}`)
  return Buffer.concat([Buffer.from(sign), encodeReply(answer)])
}

export function decodeAnswer(data: Uint8Array): RequestAnswer | undefined {
  const sign = String.fromCharCode(data[0] ?? 0)
  if (sign === SIGNS.reply) {
    const decoded = decodeReply(data.subarray(1))
    return decoded && { kind: 'reply', ...decoded }
  }
  const node = Buffer.from(data.subarray(1)).toString()
  if (sign === SIGNS.accepted) return { kind: 'accepted', node }
  if (sign === SIGNS.working) return { kind: 'working', node }
  if (sign === SIGNS.gone) return { kind: 'gone', node }
  return undefined
}
