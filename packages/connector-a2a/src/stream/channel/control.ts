import type { BrokerHandle, Message, MessageInput } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import { isJsonObject, readJson } from '@signalbox/http-kit'

import { controlChannel } from './channels.ts'

/** A grant of credit by the client's node. Cumulative: the next grant replaces a lost one. */
export interface CreditGrant {
  readonly kind: 'credit'
  /** The number of the last frame that the client has read. */
  readonly consumed: number
  /** The bytes that may be in transit after that frame. */
  readonly windowBytes: number
}

export interface Cancel {
  readonly kind: 'cancel'
}

const CANCEL: MessageInput = Object.freeze({ body: encodeText('{"cancel":true}') })

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

/**
 * Ends a stream on the node that relays it. Has no effect on a stream that is over or never
 * existed.
 * @throws BrokerError ENGINE_UNAVAILABLE
 */
export async function publishStreamCancel(system: BrokerHandle, streamId: string): Promise<void> {
  await system.events.publish(controlChannel(streamId), CANCEL)
}
