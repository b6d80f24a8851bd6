import type { BrokerHandle } from '@signalbox/broker-core'
import type { Entry } from '@signalbox/broker-core/internal'
import { JsonRpcError } from '@signalbox/http-kit'
import type { HeldBytes } from '@signalbox/http-kit'

import type { AgentDirectory } from '../agent-directory.ts'
import type { Calls, RunningCall } from '../calls.ts'
import type { CallEndReason } from '../errors.ts'
import { CallEnded } from '../errors.ts'
import { DEFAULT_MAX_ANSWER_BYTES } from '../tools/answer-size.ts'
import type { ToolContext, ToolOutcome } from '../tools/tool.ts'
import type { OwnedTask } from './owned-task.ts'
import type { TaskWork } from './running-work.ts'

/** The request about a task, as the call that it continues or cancels sees it. */
export interface TaskRequest {
  /** The broker handle of the verified caller. */
  readonly broker: BrokerHandle
  readonly agents: AgentDirectory | undefined
  readonly traceContext: Readonly<Record<string, string>>
  readonly hops: number
  /** Returns a count of the bytes that the call holds: the request is answered before the call ends. */
  readonly held?: () => HeldBytes
}

/** A tool call without a client that waits: it continues a task, or cancels one. */
export class ResumedCall implements ToolContext, RunningCall, TaskWork {
  readonly broker: BrokerHandle
  readonly agents?: AgentDirectory
  readonly traceContext: Readonly<Record<string, string>>
  readonly hops: number
  readonly mayAsk: boolean
  readonly wantsProgress = false
  readonly maxAnswerBytes = DEFAULT_MAX_ANSWER_BYTES
  readonly startedAt = performance.now()
  readonly hasTimeout = false
  readonly endsAtShutdown = false
  readonly key = undefined
  readonly waits = true
  readonly callerGone: AbortSignal = new AbortController().signal
  readonly #controller = new AbortController()
  readonly hold: HeldBytes | undefined
  readonly #calls: Calls
  #entry: Entry | undefined

  constructor({ broker, agents, traceContext, hops, held }: TaskRequest, calls: Calls, mayAsk: boolean) {
    this.hold = held?.()
    this.broker = broker
    if (agents !== undefined) this.agents = agents
    this.traceContext = traceContext
    this.hops = hops
    this.mayAsk = mayAsk
    this.#calls = calls
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  progress(): void {}

  /** The call has a task already. */
  allowTask(): boolean {
    return true
  }

  end(reason: CallEndReason): void {
    this.#controller.abort(new CallEnded(reason))
  }

  abandon(): void {
    this.end('cancelled')
  }

  /** Runs the work, which a shutdown waits for. Never rejects. */
  async run(work: (context: ToolContext) => Promise<void>, failed: (error: unknown) => void): Promise<void> {
    this.#entry = this.#calls.begin(this)
    try {
      await work(this)
    } catch (error) {
      failed(error)
    } finally {
      this.hold?.release()
      this.#entry.remove()
      this.#calls.finish()
    }
  }
}

/** Stores the outcome of a continued call in its task. */
export async function settle(
  task: OwnedTask,
  outcome: Promise<ToolOutcome>,
  failed: (error: unknown) => void,
): Promise<void> {
  try {
    await task.finish(await outcome)
  } catch (error) {
    if (!(error instanceof JsonRpcError) && !(error instanceof CallEnded)) failed(error)
    await task.fail(error)
  }
}
