import type { MessageInput, Tags } from '@signalbox/broker-core'

/** A received event, ready to be sent. */
export interface IncomingEvent {
  readonly subject: string | undefined
  readonly message: MessageInput & { readonly body: Uint8Array; readonly tags: Tags }
}
