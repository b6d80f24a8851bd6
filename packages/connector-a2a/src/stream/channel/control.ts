import type { BrokerHandle, Message, MessageInput } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import { isJsonObject, readJson } from '@signalbox/http-kit'

import { controlChannel } from './channels.ts'

/** What the client's node grants. Cumulative, so that a lost one is made good by the next. */
export interface CreditGrant {
  readonly kind: 'credit'
  /** The number of the last frame that the client has taken. */
  readonly consumed: number
  /** How many bytes may be on the way beyond it. */
  readonly windowBytes: number
}

export interface Cancel {
  readonly kind: 'cancel'
}

const CANCEL: MessageInput = Object.freeze({ body: encodeText('{"cancel":true}') })

export function encodeCredit(consumed: number, windowBytes: number): MessageInput {
  return { body: encodeText(`{"consumed":${consumed},"window_bytes":${windowBytes}}`) }
}

/** Undefined for what is neither. */
export function decodeControl({ body }: Pick<Message, 'body'>): CreditGrant | Cancel | undefined {
  const json = readJson(decodeText(body) ?? '')
  if (!isJsonObject(json?.value)) return undefined
  const { cancel, consumed, window_bytes: windowBytes } = json.value
  if (cancel === true) return { kind: 'cancel' }
  if (typeof consumed !== 'number' || typeof windowBytes !== 'number') return undefined
  return { kind: 'credit', consumed, windowBytes }
}

/**
 * Ends a stream on whichever node relays it; one that is over, or never was, takes no notice.
 * @throws BrokerError ENGINE_UNAVAILABLE
 */
export async function publishStreamCancel(system: BrokerHandle, streamId: string): Promise<void> {
  await system.events.publish(controlChannel(streamId), CANCEL)
}
