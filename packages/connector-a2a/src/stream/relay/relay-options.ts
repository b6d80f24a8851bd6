import type { BrokerHandle } from '@signalbox/broker-core'

import type { StreamLimits } from '../limits.ts'
import type { NodeBudget } from './node-budget.ts'
import type { UpstreamResponse } from './upstream.ts'

export interface RelayOptions {
  readonly system: BrokerHandle
  readonly streamId: string
  /** The agent's response: 2xx, its body untouched. */
  readonly response: UpstreamResponse
  readonly limits: StreamLimits
  /** One for all streams of the node. */
  readonly budget: NodeBudget
  /** Aborting it interrupts the stream: the node shuts down. */
  readonly signal?: AbortSignal
}

/** How a stream ended on the agent's side. */
export interface RelayEnd {
  /** The agent's response was aborted before its end: tell the agent `stream_cancel` (A10). */
  readonly cancelled: boolean
}
