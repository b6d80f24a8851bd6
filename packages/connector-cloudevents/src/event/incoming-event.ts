import type { MessageInput, Tags } from '@signalbox/broker-core'

/** An event as it came in, ready to be sent. */
export interface IncomingEvent {
  readonly subject: string | undefined
  readonly message: MessageInput & { readonly tags: Tags }
}
