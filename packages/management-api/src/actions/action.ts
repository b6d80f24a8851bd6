import type { BrokerHandle, ChannelType } from '@signalbox/broker-core'
import { compileArguments } from '@signalbox/http-kit'
import type { ArgumentRule, RequestHold, Settlement } from '@signalbox/http-kit'
import type { Static, TObject, TSchema } from 'typebox'

import type { Operator } from '../access/operator.ts'
import type { AuditEvent } from '../audit/audit-entry.ts'
import type { Redrives } from '../dead-letters/redrives.ts'
import { invalidArguments } from '../errors.ts'
import type { AgentCallStream, ManagementServices } from '../ports.ts'
import type { ActionName } from '../route-table.ts'
import type { MessageTrail } from '../trace/message-trail.ts'

/** The context of one call of an action. */
export interface ActionCall {
  readonly operator: Operator
  /** The broker, bound to the operator. */
  readonly broker: BrokerHandle
  readonly services: ManagementServices
  /** The redrives that this node runs. */
  readonly redrives: Redrives
  readonly trail: MessageTrail
  /** Aborted when the client has disconnected, or when the server shuts down. */
  readonly signal: AbortSignal
  /**
   * The longest time for which an action may wait, in ms. The listener's own time-out is a little
   * longer.
   */
  readonly maxWaitMs: number
  /** Sets the settlement of the messages in the answer, which runs after the answer was sent. */
  settleLater(settlement: Settlement | undefined): void
  /** The resources that the request holds of its caller's limits. */
  readonly hold: RequestHold | undefined
  /**
   * Counts the request as a stream from now on. Call this before the work for the stream.
   * @throws ManagementError TOO_MANY_REQUESTS
   */
  becomeStream(): void
  /** Sets the stream of server-sent events that is the answer, instead of the data. */
  answerWith(stream: AgentCallStream): void
}

/** The target of an action, for the audit log. */
export type Target = Pick<AuditEvent, 'type' | 'channel' | 'agent'>

interface ActionSource<Input extends TObject, Data extends TSchema> {
  /** The last part of the action's path. */
  readonly name: ActionName
  readonly summary: string
  readonly input: Input
  readonly data: Data
  /** True if the answer is a stream of server-sent events. @default false */
  readonly answersEvents?: boolean
  target(args: Static<Input>): Target
  /** A rule over several arguments. */
  readonly rule?: ArgumentRule<Static<Input>>
  run(args: Static<Input>, call: ActionCall): Promise<Static<Data>>
  /** Returns the result in a few words, for the audit log. */
  detail?(data: Static<Data>): string | undefined
}

/** An action with validated arguments. */
export interface PreparedAction {
  readonly target: Target
  run(call: ActionCall): Promise<{ readonly data: unknown; readonly detail?: string }>
}

/** A management action, as the route runs it. */
export interface ManagementAction {
  readonly name: ActionName
  readonly summary: string
  readonly input: TObject
  readonly data: TSchema
  readonly answersEvents: boolean
  /** @throws ManagementError ARGUMENT_INVALID, listing every problem */
  prepare(args: unknown): PreparedAction
}

/** Defines an action. One schema is the type, the validation and the documentation of its arguments. */
export function defineAction<Input extends TObject, Data extends TSchema>(
  source: ActionSource<Input, Data>,
): ManagementAction {
  const { name, summary, input, data, answersEvents = false } = source
  const check = compileArguments({
    whose: 'action',
    input,
    rule: source.rule,
    refused: (problems) => invalidArguments(name, problems),
  })
  return {
    name,
    summary,
    input,
    data,
    answersEvents,
    prepare(given) {
      const args = check(given)
      return {
        target: source.target(args),
        async run(call) {
          const result = await source.run(args, call)
          const detail = source.detail?.(result)
          return { data: result, ...(detail === undefined ? {} : { detail }) }
        },
      }
    },
  }
}

/** Returns the target of an action on one channel of a fixed type. */
export function ofType(type: ChannelType): (args: { readonly channel: string }) => Target {
  return ({ channel }) => ({ type, channel })
}

export const STRICT = { additionalProperties: false } as const
