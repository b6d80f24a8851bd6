import type { BrokerHandle } from '@signalbox/broker-core'
import type { ByteBudget } from '@signalbox/http-kit'

import type { StreamLimits } from '../limits.ts'
import type { EventConverter } from './event-converter.ts'
import type { NodeBudget } from './node-budget.ts'
import type { UpstreamResponse } from './upstream.ts'

export interface RelayOptions {
  readonly system: BrokerHandle
  readonly streamId: string
  /** The agent's response: status 2xx, with an unread body. */
  readonly response: UpstreamResponse
  /** Converts the agent's events. @default to the gateway's own events */
  readonly events?: EventConverter
  readonly limits: StreamLimits
  /** The budget that all streams of the node share. */
  readonly budget: NodeBudget
  /** Counts the bytes of an event that is being read, or that waits for credit. @default no counting */
  readonly held?: ByteBudget
  /** Aborting it interrupts the stream. For the shutdown of the node. */
  readonly signal?: AbortSignal
}

/** The end of a stream on the agent's side. */
export interface RelayEnd {
  /** True if the agent's response was aborted before its end: send `stream_cancel` to the agent. */
  readonly cancelled: boolean
}
