import type { BrokerHandle } from '@signalbox/broker-core'

import type { WebhookFormat } from '../format.ts'
import type { SecretBox } from '@signalbox/http-kit'
import type { Beat } from '../subscription/beat.ts'
import type { CursorRecord, SubscriptionRecord } from '../subscription/subscription-record.ts'
import type { WebhookLog } from '../subscription/webhook-log.ts'
import type { AttemptOutcome } from './attempt.ts'
import type { EndpointClient } from './endpoint-client.ts'
import type { Slots } from './slots.ts'

/** The parts that all subscriptions of a node share. */
export interface RunnerParts {
  readonly system: BrokerHandle
  readonly log: WebhookLog
  readonly beat: Beat
  readonly client: EndpointClient
  readonly slots: Slots
  readonly box: SecretBox
  readonly node: string
  readonly maxAgeMs: number
  readonly formatOf: (name: string) => WebhookFormat | undefined
  /** Returns `true` if the policy lets the owner have a message of the channel now. */
  readonly permits: (record: SubscriptionRecord) => boolean
  readonly attempted: (outcome: AttemptOutcome, seconds: number) => void
  readonly deadLettered: () => void
  readonly dropped: () => void
  readonly failed: (error: unknown) => void
}

/** The effects of a runner on its subscription. */
export interface RunnerEvents {
  readonly cursor: (cursor: CursorRecord, sequence: number) => void
  /** Called if another node or an operator changed the position. */
  readonly lost: () => void
  /** Called if the subscription must end until its owner or an operator acts. The runner has halted. */
  readonly disabled: (reason: string) => void
  /** Called after an unexpected failure. The runner has halted and must be replaced. */
  readonly crashed: () => void
}
