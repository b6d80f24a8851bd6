import type { HeldBytes } from '@signalbox/http-kit/internal'

import type { AgentQuery } from '../requests/agent-query.ts'
import type { ServedRun } from '../runs/runs.ts'
import type { CallPlace } from './instances/instance-pool.ts'
import type { FollowedTask } from './instances/task-ids.ts'
import type { IsolatedRequest } from './isolation/task-isolation.ts'

/** A call under way, at one of the agent's instances. */
export interface CallUnderWay {
  readonly place: CallPlace
  readonly query: AgentQuery
  /** The task that the call continues, if the agent has several instances. */
  readonly followed: FollowedTask | undefined
  /** Counts the bytes of the agent's response. */
  readonly held: HeldBytes
  /** Undefined without isolation. */
  readonly isolated?: IsolatedRequest | undefined
  /** The run that keeps the answer; undefined if it is not kept. */
  readonly run?: ServedRun | undefined
}

/** A request that its caller may send. */
export type AdmittedRequest = Pick<CallUnderWay, 'query' | 'held' | 'isolated' | 'run'>
