import type { ChannelType } from '@signalbox/broker-core/engine'

export type LiveType = Exclude<ChannelType, 'queues' | 'events_store'>

/** A channel of a type that is not stored was created or deleted on some node. */
export interface LiveChange {
  readonly type: LiveType
  readonly name: string
  readonly exists: boolean
}
