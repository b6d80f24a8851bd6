import type { BrokerHandle } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import type { ClaimedKey, KeyedRequest, KeyRecord } from '@signalbox/broker-core/internal'
import { IdempotencyKeys, requestLog } from '@signalbox/broker-core/internal'

import type { AgentQuery, LoggedRequest } from '../requests/agent-query.ts'
import type { AgentReply } from '../requests/agent-reply.ts'
import type { StreamLimits } from '../stream/limits.ts'
import { resolveLimits } from '../stream/limits.ts'
import type { Timed } from '../stream/stream-timer.ts'
import { StreamTimer } from '../stream/stream-timer.ts'
import { startedTask } from '../subscriber/instances/task-ids.ts'
import { taskRequest } from '../subscriber/isolation/task-isolation.ts'
import type { TaskRecords } from '../subscriber/isolation/task-records.ts'
import { soughtTexts, mentions } from '../subscriber/json-bodies.ts'
import { METHODS } from '../wire/index.ts'
import type { RunCounters } from '../operators/run-counts.ts'
import type { RunChunk, RunCursor, RunLog } from './run-log.ts'
import { cursorText } from './run-log.ts'
import { RunWriter } from './run-writer.ts'

export interface RunsOptions {
  readonly system: BrokerHandle
  readonly log: RunLog
  readonly records: TaskRecords
  /** `false` if no other node uses the store, so that a run that this node does not serve is served by none. */
  readonly shared: boolean
  /** Time for which keys are kept, in ms (CONNECTORSA2_A_LOG_SECONDS). */
  readonly keepMs: number
  /** The most runs in progress on this node (CONNECTORSA2_A_LOG_RUNS_MAX). */
  readonly max: number
  /** The most runs of one caller in progress on this node (LIMITS_CALLER_RUNS); 0 is no limit. */
  readonly maxPerCaller: number
  readonly streamLimits: StreamLimits
  /** Time without a sign of life of the agent after which a stream ends, in ms; 0 is never. */
  readonly idleMs: number
  readonly failed: (error: unknown) => void
  readonly counters: Pick<RunCounters, 'keyed'>
}

/** The runs that this node serves: requests whose answers are kept in the log. */
export class Runs {
  readonly log: RunLog
  readonly #options: RunsOptions
  readonly #keys: IdempotencyKeys
  #inProgress = 0
  readonly #served = new Set<string>()
  readonly #perCaller = new Map<string, number>()
  readonly #leaving = new AbortController()

  constructor(options: RunsOptions) {
    this.#options = options
    this.log = options.log
    this.#keys = new IdempotencyKeys(requestLog(options.system), options.keepMs)
  }

  /** The number of runs in progress on this node. */
  get inProgress(): number {
    return this.#inProgress
  }

  /** Aborted when this node stops: other nodes continue its streams. */
  get leaving(): AbortSignal {
    return this.#leaving.signal
  }

  /** Lets other nodes continue the streams that this node relays. */
  leave(): void {
    this.#leaving.abort()
  }

  /** Returns true if it is certain that no node serves a run. */
  isLeft(run: string): boolean {
    return !this.#options.shared && !this.#served.has(run)
  }

  /**
   * Begins the run of a request. Resolves with a reply in place of the agent's if the request may not run: it did
   * already, or its caller has too many runs.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async begin({ account, body, callerId }: AgentQuery, logged: LoggedRequest): Promise<ServedRun | AgentReply> {
    const { agentId, run } = logged
    const { max, maxPerCaller } = this.#options
    const inProgress = this.#perCaller.get(account) ?? 0
    if (this.#inProgress >= max) return busy(`this node has ${max} runs in progress (CONNECTORSA2_A_LOG_RUNS_MAX)`)
    if (maxPerCaller > 0 && inProgress >= maxPerCaller) {
      return busy(`the caller has ${maxPerCaller} runs in progress (LIMITS_CALLER_RUNS)`)
    }
    this.#inProgress++
    this.#perCaller.set(account, inProgress + 1)
    this.#served.add(run)
    const over = (): void => this.#over(account, run)
    try {
      const claimed = await this.claim(callerId, logged, { run, sequence: 0 })
      if (claimed !== undefined && 'status' in claimed) {
        over()
        return claimed
      }
      const start = { claimed, over, leaving: this.leaving, subscribes: isSubscription(body) }
      return new ServedRun(this.#options, { agentId, callerId }, run, start)
    } catch (error) {
      over()
      throw error
    }
  }

  /**
   * Claims the key of a request, if it has one. Resolves with a reply in place of the agent's if the key is that of an
   * earlier request.
   * @param cursor The event after which the answer begins
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async claim(
    callerId: string,
    { agentId, once }: LoggedRequest,
    cursor: RunCursor,
  ): Promise<ClaimedKey | AgentReply | undefined> {
    if (once === undefined) return undefined
    const claimed = await this.#keys.claim(keyedRequest(callerId, agentId, once), cursorText(cursor))
    if ('run' in claimed) return this.#earlier(claimed, once)
    this.#options.counters.keyed.first++
    return claimed
  }

  /**
   * Returns the reply for a request whose key is that of an earlier one; undefined if it is not.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async earlier(callerId: string, { agentId, once }: LoggedRequest): Promise<AgentReply | undefined> {
    const known = once && (await this.#keys.find(keyedRequest(callerId, agentId, once)))
    return known === undefined || once === undefined ? undefined : this.#earlier(known, once)
  }

  #earlier(known: KeyRecord, { digest }: Once): AgentReply {
    const isSame = known.digest === digest
    this.#options.counters.keyed[isSame ? 'repeated' : 'refused']++
    return isSame ? { ...NO_REPLY, error: '', follow: known.run, repeated: true } : KEY_REUSED
  }

  /**
   * Continues a run that its node has left: the one that writes the next chunk has it. Resolves with undefined for a run
   * that is over.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async takeOver({ callerId }: AgentQuery, { agentId, run }: LoggedRequest): Promise<ServedRun | undefined> {
    // Two readers may ask for it at the same time.
    if (this.#served.has(run)) return undefined
    this.#served.add(run)
    const over = (): void => void this.#served.delete(run)
    try {
      const last = await this.log.last(run)
      if (last === undefined) await this.log.append(run, answerOf({ agentId, callerId }, OUTCOME_UNKNOWN))
      if (last !== undefined && !last.end && last.agentId === agentId && last.callerId === callerId) {
        return new ServedRun(this.#options, { agentId, callerId }, run, { after: last, over, leaving: this.leaving })
      }
      over()
      return undefined
    } catch (error) {
      over()
      throw error
    }
  }

  #over(account: string, run: string): void {
    this.#served.delete(run)
    this.#inProgress--
    const left = (this.#perCaller.get(account) ?? 1) - 1
    if (left === 0) this.#perCaller.delete(account)
    else this.#perCaller.set(account, left)
  }
}

interface RunStart {
  readonly claimed?: ClaimedKey | undefined
  readonly after?: RunChunk | undefined
  readonly leaving: AbortSignal
  readonly over: () => void
  /** True for a request that subscribes to a task. */
  readonly subscribes?: boolean
}

/** The names of the request that subscribes to a task. */
const SUBSCRIBES = soughtTexts(Object.values(METHODS.resubscribe.names).filter((name) => name !== undefined))

/** Returns true for a request that subscribes to a task: its body is small. */
function isSubscription(body: Uint8Array): boolean {
  return body.byteLength <= MAX_SUBSCRIPTION_BYTES && mentions(body, SUBSCRIBES) && taskRequest(body).kind === 'read'
}

const MAX_SUBSCRIPTION_BYTES = 4_096

/** One run on the node that serves it. */
export class ServedRun implements Timed {
  readonly writer: RunWriter
  readonly #options: RunsOptions
  readonly #run: string
  readonly #start: RunStart
  readonly #timer: StreamTimer
  #isOver = false

  constructor(
    options: RunsOptions,
    origin: { readonly agentId: string; readonly callerId: string },
    run: string,
    start: RunStart,
  ) {
    const { system, log, records, idleMs, streamLimits, failed } = options
    const limits = resolveLimits(streamLimits)
    const { after, leaving: stopped } = start
    this.#options = options
    this.#run = run
    this.#start = start
    this.writer = new RunWriter({
      system,
      log,
      run,
      origin,
      after,
      heartbeatMs: limits.heartbeatMs,
      idleMs,
      // A subscription has the events of the task's last run once more.
      begun: (taskId) =>
        records.add(origin.agentId, taskId, origin.callerId, start.subscribes === true ? undefined : run),
      stopped,
      failed,
    })
    if (after?.taskId !== undefined) this.writer.resumeTask(after.taskId)
    // Its heartbeats show readers that the run is served.
    this.#timer = StreamTimer.for(limits)
    this.#timer.add(this)
  }

  /** @inheritdoc */
  tick(now: number): void {
    this.writer.tick(now)
  }

  /** @inheritdoc */
  crash(error: unknown): void {
    this.#options.failed(error)
    this.end()
  }

  /**
   * Keeps the answer of an agent that did not stream, and ends the run. A request that certainly was not sent releases
   * its key.
   */
  async answered(
    origin: { readonly agentId: string; readonly callerId: string },
    { wire }: AgentQuery,
    reply: AgentReply,
  ): Promise<void> {
    try {
      if (reply.unsent === true && !reply.executed) await this.#start.claimed?.release()
      else {
        const kept = isLost(reply) ? OUTCOME_UNKNOWN : reply
        const chunk = answerOf(origin, kept, wire?.answer === 'agent' ? undefined : wire?.version)
        const { taskId } = startedTask(reply.body)
        if (taskId !== undefined) await this.#options.records.add(origin.agentId, taskId, origin.callerId, this.#run)
        await this.#options.log.append(this.#run, chunk)
      }
    } catch (error) {
      // The caller has its answer; a request with the same key learns that the outcome is unknown.
      if (!isBrokerError(error, 'MESSAGE_TOO_LARGE')) this.#options.failed(error)
    } finally {
      this.end()
    }
  }

  /** Ends the run on this node. Idempotent. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.writer.shut()
    this.#timer.delete(this)
    this.#start.over()
  }
}

/** Returns the one chunk of a run without events. */
function answerOf(
  origin: { readonly agentId: string; readonly callerId: string },
  reply: AgentReply,
  wire?: RunChunk['wire'],
): RunChunk {
  const { body } = reply
  return {
    ...origin,
    number: 1,
    first: 1,
    wire,
    taskId: undefined,
    body,
    more: false,
    continues: false,
    end: true,
    reply,
  }
}

type Once = NonNullable<LoggedRequest['once']>

function keyedRequest(callerId: string, target: string, { digest, key }: Once): KeyedRequest {
  return { kind: 'agent', target, callerId, key, digest }
}

/** Failures after which the agent may have acted. */
const LOST: ReadonlySet<AgentReply['failure']> = new Set(['timeout', 'unreachable', 'unavailable', 'busy'])

function isLost({ failure }: AgentReply): boolean {
  return LOST.has(failure)
}

const NO_BODY = new Uint8Array(0)
const NO_REPLY = { executed: false, status: 0, body: NO_BODY } as const

const OUTCOME_UNKNOWN: AgentReply = {
  ...NO_REPLY,
  error: 'the outcome of this request is unknown: it may have run, and it is not sent again',
  failure: 'unknown',
}

const KEY_REUSED: AgentReply = {
  ...NO_REPLY,
  error: 'another request has this idempotency key; use a new key for each request, and the same one to repeat it',
  failure: 'key_reused',
}

function busy(reason: string): AgentReply {
  return { ...NO_REPLY, error: `server busy: ${reason}`, failure: 'busy', unsent: true }
}
