import type { BrokerErrorCode } from '../errors.ts'
import type { OutgoingMessage } from '../message.ts'
import type { RoutableType } from './rule.ts'

export interface RoutingPlace {
  readonly type: RoutableType
  readonly channel: string
}

/** A copy that the routing table made. */
export interface RoutedCopy {
  /** Index of the table's entry, from 0. */
  readonly rule: number
  readonly from: RoutingPlace
  readonly to: RoutingPlace
  /** 1 for a copy of what the sender sent, 2 for a copy of that, and so on. */
  readonly hops: number
  /** The copy. */
  readonly message: OutgoingMessage
}

/**
 * Why a rule made no copy: its condition could not be evaluated; a tag that a placeholder needs is missing; the
 * placeholders give a channel name that is not valid or is reserved; the message was on the target already and would go
 * round; it has come as far as it may; it has as many copies as it may; or the engine refused the copy.
 */
export type RoutingFailureReason = 'condition' | 'placeholder' | 'channel' | 'cycle' | 'hops' | 'copies' | 'engine'

/** A copy, or a rule's copies all together, that were not made. The send itself succeeded. */
export interface RoutingFailure {
  /** Index of the table's entry, from 0. */
  readonly rule: number
  readonly from: RoutingPlace
  /** The target, where the failure is that of one target. */
  readonly to?: RoutingPlace
  readonly reason: RoutingFailureReason
  /** For a person. */
  readonly detail: string
  /** With reason `engine`: what the engine said. */
  readonly code?: BrokerErrorCode
  /** The message that was to be copied. */
  readonly message: OutgoingMessage
}
