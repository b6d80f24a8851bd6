import type { MessageInput } from '@signalbox/broker-core'

/** An event of a send, and its channel. */
export interface AddressedEvent {
  readonly channel: string
  readonly message: MessageInput
}
