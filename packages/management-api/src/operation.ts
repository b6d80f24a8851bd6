import type { BrokerHandle, ChannelType } from '@signalbox/broker-core'
import { argumentsForm, defineOperation, queryForm } from '@signalbox/http-kit/internal'
import type { RequestHold, Settlement } from '@signalbox/http-kit'
import type { OperationSource } from '@signalbox/http-kit/internal'
import type { Static, TObject, TSchema } from 'typebox'

import type { Operator } from './access/operator-surface.ts'
import type { AuditEvent } from './audit/audit-entry.ts'
import type { AuditLog } from './audit/audit-log.ts'
import type { Attachments } from './channels/attachments.ts'
import type { ChannelIndex } from './channels/channel-index.ts'
import type { Redrives } from './dead-letters/redrives.ts'
import type { AnswerOf } from './envelope.ts'
import { invalidArguments, invalidParameters } from './errors.ts'
import type { History } from './history/history.ts'
import type { TrafficMap } from './map/traffic-map.ts'
import type { Monitors } from './monitor/monitors.ts'
import type { AgentCallStream } from './agent-ports.ts'
import type { ManagementServices, NodeStatus, SecurityStatus, SettingStatus } from './ports.ts'
import type { OpenRequests } from './requests/open-requests.ts'
import type { ActionName, ReadingPath } from './route-table.ts'
import type { Statistics } from './statistics/statistics.ts'
import type { MessageTrail } from './trace/message-trail.ts'

/** A route that operators read, or an action that they run. `route-table.ts` has the role that it needs. */
export type Operation = ManagementRoute | ManagementAction

/** The state that all requests share. */
export interface ManagementEnvironment {
  readonly statistics: Statistics
  readonly attachments: Attachments
  readonly audit: AuditLog
  readonly monitors: Monitors
  readonly redrives: Redrives
  readonly requests: OpenRequests
  readonly trail: MessageTrail
  readonly history: History
  readonly map: TrafficMap
  readonly channelIndex: ChannelIndex
  /** Returns the effective configuration, with secrets masked. */
  config(): object
  /** Returns every setting with the source of its value. */
  settings(): readonly SettingStatus[]
  security(): SecurityStatus
  /** Returns the page of a trace in the operators' tracing system; undefined if there is none. */
  traceUrl(traceId: string): string | undefined
  node(): Promise<NodeStatus>
  /** Returns the number of open streams of server-sent events, by connector. */
  streams(): Readonly<Record<string, number>>
}

export interface ManagementRouteCall {
  readonly operator: Operator
  readonly services: ManagementServices
  readonly environment: ManagementEnvironment
}

/** The context of one call of an action. */
export interface ActionCall extends ManagementRouteCall {
  /** The broker, bound to the operator. */
  readonly broker: BrokerHandle
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

/** A GET route of the management API, answered in the envelope. */
export interface ManagementRoute extends Omit<OperationSource<TObject, TSchema>, 'rule'> {
  readonly method: 'GET'
  /** The first of its paths in `route-table.ts`. */
  readonly name: ReadingPath
  /** True if the answer has bodies of messages, so that it can be long. */
  readonly hasBodies: boolean
  /**
   * Validates the query, and returns the function that runs the route.
   * @throws ManagementError PARAMETER_INVALID
   */
  prepare(query: string): (call: ManagementRouteCall) => Promise<unknown>
}

interface RouteSource<Query extends TObject, Data extends TSchema> extends OperationSource<Query, Data> {
  readonly name: ReadingPath
  /** @default false */
  readonly hasBodies?: boolean
  run(query: Static<Query>, call: ManagementRouteCall): AnswerOf<Static<Data>> | Promise<AnswerOf<Static<Data>>>
}

const QUERY = queryForm(invalidParameters)

/** Defines a route that reads. */
export function defineManagementRoute<Query extends TObject, Data extends TSchema>(
  source: RouteSource<Query, Data>,
): ManagementRoute {
  const { name, hasBodies = false } = source
  const operation = defineOperation(QUERY, source)
  return {
    ...operation,
    method: 'GET',
    name,
    hasBodies,
    prepare(query) {
      const parameters = operation.read(query)
      return async (call) => source.run(parameters, call)
    },
  }
}

/** The target of an action, for the audit log. */
export type Target = Pick<AuditEvent, 'type' | 'channel' | 'agent'>

/** An action of `POST /api/actions/{action}`. */
export interface ManagementAction extends Omit<OperationSource<TObject, TSchema>, 'rule'> {
  readonly method: 'POST'
  /** The last part of the action's path. */
  readonly name: ActionName
  /** True if the answer is a stream of server-sent events. */
  readonly answersEvents: boolean
  /** @throws ManagementError ARGUMENT_INVALID, listing every problem */
  prepare(args: unknown): PreparedAction
}

/** An action with validated arguments. */
interface PreparedAction {
  readonly target: Target
  run(call: ActionCall): Promise<{ readonly data: unknown; readonly detail: string | undefined }>
}

interface ActionSource<Input extends TObject, Data extends TSchema> extends OperationSource<Input, Data> {
  readonly name: ActionName
  /** @default false */
  readonly answersEvents?: boolean
  /** @default none */
  target?(args: Static<Input>): Target
  run(args: Static<Input>, call: ActionCall): Promise<AnswerOf<Static<Data>>>
  /** Returns the result in a few words, for the audit log. */
  detail?(data: AnswerOf<Static<Data>>): string | undefined
}

const ARGUMENTS = argumentsForm('action', invalidArguments)

/** Defines an action. */
export function defineAction<Input extends TObject, Data extends TSchema>(
  source: ActionSource<Input, Data>,
): ManagementAction {
  const { name, answersEvents = false } = source
  const operation = defineOperation(ARGUMENTS, source)
  return {
    ...operation,
    method: 'POST',
    name,
    answersEvents,
    prepare(given) {
      const args = operation.read(given)
      return {
        target: source.target?.(args) ?? {},
        async run(call) {
          const result = await source.run(args, call)
          return { data: result, detail: source.detail?.(result) }
        },
      }
    },
  }
}

/** Returns the target of an action on one channel of a fixed type. */
export function ofType(type: ChannelType): (args: { readonly channel: string }) => Target {
  return ({ channel }) => ({ type, channel })
}

/** The option of a schema that refuses further members. */
export const STRICT = { additionalProperties: false } as const
