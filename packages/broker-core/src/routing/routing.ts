import type { BrokerErrorCode } from '../errors.ts'
import type { OutgoingMessage } from '../message.ts'
import type { RoutingTable } from './routing-table.ts'
import type { RoutableType } from './rule.ts'

const EMPTY: RoutingTable = Object.freeze({ rules: [] })

/**
 * The current routing table. It can be replaced at any time; routing that has started continues with the previous
 * table.
 */
export class Routing {
  #table: RoutingTable

  constructor(table: RoutingTable = EMPTY) {
    this.#table = table
  }

  get table(): RoutingTable {
    return this.#table
  }

  /** `false` if there is no rule, so that senders can skip the routing. */
  get active(): boolean {
    return this.#table.rules.length > 0
  }

  replace(table: RoutingTable): void {
    this.#table = table
  }
}

export interface RoutingPlace {
  readonly type: RoutableType
  readonly channel: string
}

/** A copy that the routing table made. */
export interface RoutedCopy {
  /** The index of the table's entry, from 0. */
  readonly rule: number
  readonly from: RoutingPlace
  readonly to: RoutingPlace
  /** 1 for a copy of the sender's message, 2 for a copy of that copy, and so on. */
  readonly hops: number
  /** The copy. */
  readonly message: OutgoingMessage
}

/**
 * The reason why a rule made no copy: its condition could not be evaluated (`condition`); a placeholder needs a tag
 * that is missing (`placeholder`); the placeholders result in an invalid or reserved channel name (`channel`); the
 * message was on the target before and would circulate (`cycle`); it reached the maximum number of hops (`hops`) or
 * copies (`copies`); the body does not match the
 * target's schema (`schema`); or the engine refused the copy (`engine`).
 */
export type RoutingFailureReason =
  | 'condition'
  | 'placeholder'
  | 'channel'
  | 'cycle'
  | 'hops'
  | 'copies'
  | 'schema'
  | 'engine'

/** A copy that was not made, or all copies of a rule. The send itself succeeded. */
export interface RoutingFailure {
  /** The index of the table's entry, from 0. */
  readonly rule: number
  readonly from: RoutingPlace
  /** The target, if the failure concerns one target. */
  readonly to?: RoutingPlace | undefined
  readonly reason: RoutingFailureReason
  /** A description for a person. */
  readonly detail: string
  /** The error code, with the reasons `schema` and `engine`. */
  readonly code?: BrokerErrorCode | undefined
  /** The message that was not copied. */
  readonly message: OutgoingMessage
}
