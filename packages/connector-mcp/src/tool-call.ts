import type { BrokerHandle } from '@signalbox/broker-core'
import type { AgentDirectory } from '@signalbox/broker-core/ports'
import type { Entry } from '@signalbox/broker-core/internal'
import type { HttpRequest, JsonObject, RequestHold, Settlements } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { hopsOf, idKey, RefusedError } from '@signalbox/http-kit/internal'

import { answerFailure, answerTimeout, CallProgress } from './call-answer.ts'
import type { CallEndReason, Calls, RunningCall } from './calls.ts'
import { CallEnded, callKey } from './calls.ts'
import type { McpExchange } from './mcp-exchange.ts'
import type { CallIdentity, CallRetry, OpenInput, RequestStates } from './request-state.ts'
import { callIdentity, inputMembers } from './request-state.ts'
import { LongCall } from './tasks/long-call.ts'
import type { OwnedTask } from './tasks/owned-task.ts'
import type { Tasks } from './tasks/tasks.ts'
import type { TaskHandling, Tool, ToolContext, ToolOutcome } from './tools/tool.ts'
import { resultMembers } from './tools/tool.ts'

/** The parts that all calls of one connector share. */
export interface CallEnvironment {
  readonly calls: Calls
  readonly settlements: Settlements
  readonly agents: AgentDirectory | undefined
  /** Absent if calls cannot become tasks. */
  readonly tasks: Tasks | undefined
  readonly states: RequestStates
  readonly keepAliveMs: number
  readonly maxAnswerBytes: number
  failed(error: unknown, request?: HttpRequest): void
}

/**
 * One `tools/call`, from its arguments to its answer. Parts that only a waiting call needs (abort signal, listeners)
 * are created when the tool first reads its signal.
 */
export class ToolCall implements ToolContext, RunningCall {
  readonly broker: BrokerHandle
  readonly agents?: AgentDirectory
  readonly startedAt = performance.now()
  readonly #tool: Tool
  readonly #exchange: McpExchange
  readonly #id: string
  readonly #progressToken: string | undefined
  readonly #environment: CallEnvironment
  #entry: Entry | undefined
  #key: string | undefined
  freeFormText: string | undefined
  #controller: AbortController | undefined
  #progress: CallProgress | undefined
  #over = false
  #finished = false
  #longCall: LongCall | undefined
  /** Present for a call that may ask for input. */
  #identity: CallIdentity | undefined
  /** `true` when the client has its task instead of an answer, so that its connection does not matter any more. */
  #isTask = false

  /**
   * @param id The source text of the JSON-RPC id
   * @param progressToken The source text of `_meta.progressToken`, if the client sent one and reads event streams
   */
  constructor(
    tool: Tool,
    broker: BrokerHandle,
    exchange: McpExchange,
    id: string,
    progressToken: string | undefined,
    environment: CallEnvironment,
  ) {
    this.#tool = tool
    this.broker = broker
    this.#exchange = exchange
    this.#id = id
    this.#progressToken = progressToken
    this.#environment = environment
    if (environment.agents !== undefined) this.agents = environment.agents
  }

  get key(): string | undefined {
    this.#key ??= callKey(this.broker.caller.clientId, this.#exchange.sessionId, idKey(this.#id))
    return this.#key
  }

  get maxAnswerBytes(): number {
    return this.#environment.maxAnswerBytes
  }

  get waits(): boolean {
    return this.#controller !== undefined && !this.#over
  }

  get hasTimeout(): boolean {
    return !this.#tool.ownTimeout
  }

  get traceContext(): Readonly<Record<string, string>> {
    return this.#exchange.traceHeaders
  }

  get traced(): boolean {
    return this.#exchange.span !== undefined
  }

  get hold(): RequestHold | undefined {
    return this.#exchange.hold
  }

  get hops(): number {
    return hopsOf(this.#exchange.request.headers)
  }

  get endsAtShutdown(): boolean {
    return this.#tool.onDisconnect === 'cancel'
  }

  get signal(): AbortSignal {
    if (this.#controller !== undefined) return this.#controller.signal
    const controller = new AbortController()
    this.#controller = controller
    if (this.#over) {
      controller.abort(new CallEnded('timeout'))
      return controller.signal
    }
    if (this.#tool.onDisconnect === 'cancel' || this.#exchange.revision.closingCancels) {
      if (this.#exchange.abandoned) this.end('disconnected')
      else this.#exchange.response.once('close', () => this.end('disconnected'))
    }
    return controller.signal
  }

  get callerGone(): AbortSignal {
    const gone = new AbortController()
    const onClose = (): void => {
      if (!this.#finished && !this.#isTask) gone.abort(new CallEnded('disconnected'))
    }
    if (this.#exchange.abandoned) onClose()
    else this.#exchange.response.once('close', onClose)
    return gone.signal
  }

  get mayAsk(): boolean {
    return this.#exchange.capabilities.forms
  }

  get #mayBecomeTask(): boolean {
    return this.#environment.tasks !== undefined && this.#exchange.capabilities.tasks
  }

  allowTask(state: JsonObject = {}): boolean {
    const { tasks } = this.#environment
    if (tasks === undefined || !this.#mayBecomeTask || this.#over) return false
    const task = { caller: this.broker.caller, tool: this.#tool.definition.name, asks: this.mayAsk, state }
    const work = { abandon: () => this.end('cancelled') }
    this.#longCall ??= new LongCall(tasks, task, work, (created) => this.#answerWithTask(created))
    return true
  }

  /** Answers with the task that the call has become. */
  #answerWithTask(task: OwnedTask): void {
    if (this.#over || this.#exchange.abandoned) {
      void task.drop()
      this.end('disconnected')
      return
    }
    this.#isTask = true
    this.#exchange.succeed(this.#id, task.members, 'success', { type: 'task' })
  }

  get wantsProgress(): boolean {
    return this.#progressToken !== undefined
  }

  progress(message: string): void {
    const token = this.#progressToken
    if (token === undefined || this.#over || this.#isTask || this.#exchange.abandoned) return
    // Tools call this from timers, where an error would be uncaught.
    try {
      this.#progress ??= new CallProgress(this.#exchange, token, this.#environment.keepAliveMs, this.startedAt)
      this.#progress.write(message)
    } catch (error) {
      this.#crash(error)
    }
  }

  /**
   * Runs the tool and answers.
   * @param retry Continues a call that asked for input
   * @param freeFormText The source text of the argument whose content is free
   */
  run(args: unknown, retry: CallRetry | undefined, freeFormText: string | undefined): void {
    this.#entry = this.#environment.calls.begin(this)
    // The tool may continue after its client disconnected, and the arguments stay in memory.
    this.#exchange.hold?.retain()
    const { onTask, definition } = this.#tool
    if (onTask !== undefined && (this.mayAsk || retry !== undefined)) {
      this.#identity = callIdentity(this.broker.caller.clientId, definition.name, args)
    }
    if (retry === undefined) {
      this.freeFormText = freeFormText
      this.#settleWith(() => this.#tool.call(args, this))
      // Not while the call waits: it would double the memory of its arguments.
      this.freeFormText = undefined
    } else {
      this.#continue(retry, this.#identity, onTask).catch((error: unknown) => {
        if (error instanceof JsonRpcError) this.#refuse(error)
        else this.#crash(error)
      })
    }
  }

  /** Continues a call that asked for input, or asks again if a response is missing. @throws JsonRpcError */
  async #continue(
    retry: CallRetry,
    identity: CallIdentity | undefined,
    onTask: TaskHandling | undefined,
  ): Promise<void> {
    if (identity === undefined || onTask === undefined) {
      const text = `invalid params: ${this.#tool.definition.name} never asks for input, so requestState cannot be its own`
      throw new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, text)
    }
    const input = await this.#environment.states.answer(identity, retry)
    const missing = Object.keys(input.requests)
    if (missing.length === 0) this.#settleWith(() => onTask.resume(input.state, input.responses, this))
    else if (this.mayAsk) await this.#ask(input, identity)
    else {
      const text = `invalid params: inputResponses must have a response to ${missing.join(', ')}`
      throw new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, text)
    }
  }

  /** Answers with requests to the client, which then repeats the call with the responses. */
  async #ask(input: OpenInput, identity: CallIdentity): Promise<void> {
    const requestState = await this.#environment.states.write(identity, input)
    this.#release()
    this.#finish()
    this.#exchange.succeed(this.#id, inputMembers(input, requestState), 'success', { type: 'input_required' })
  }

  /** Answers a repeated call that cannot be continued. */
  #refuse(error: JsonRpcError): void {
    if (error.cause !== undefined) this.#environment.failed(error.cause, this.#exchange.request)
    this.#release()
    this.#finish()
    this.#exchange.fail(error, this.#id)
  }

  #settleWith(work: () => Promise<ToolOutcome>): void {
    let outcome: Promise<ToolOutcome>
    try {
      outcome = work()
    } catch (error) {
      this.#fail(error)
      return
    }
    outcome
      .then(
        (value) => this.#settle(value),
        (error: unknown) => this.#settleFailure(error),
      )
      .catch((error: unknown) => this.#crash(error))
  }

  /** Ends the call early: answers the client as the reason requires, and aborts the tool's signal. */
  end(reason: CallEndReason): void {
    if (this.#over) return
    // Called from timers and sockets, where an error would be uncaught.
    try {
      this.#end(reason)
    } catch (error) {
      this.#crash(error)
    }
  }

  #end(reason: CallEndReason): void {
    if (this.#isTask) {
      if (reason !== 'disconnected') this.#controller?.abort(new CallEnded(reason))
      return
    }
    // At shutdown the tool still answers its client itself, for example with an empty result.
    if (reason !== 'shutdown') this.#release()
    this.#controller?.abort(new CallEnded(reason))
    if (reason === 'disconnected') this.#exchange.finish('disconnected')
    // A client that canceled must not receive an answer.
    if (reason === 'cancelled') this.#exchange.empty(202, 'cancelled')
    if (reason === 'timeout') {
      this.#finish()
      answerTimeout(this.#exchange, this.#id, this.#environment.calls.timeoutMs)
    }
  }

  #settle(outcome: ToolOutcome): void | Promise<void> {
    const created = this.#longCall?.end(outcome.input !== undefined)
    if (created === undefined) return this.#succeedOrAsk(outcome)
    else
      return this.#settleTask(
        created,
        (task) => task.finish(outcome),
        () => this.#succeedOrAsk(outcome),
      )
  }

  #settleFailure(error: unknown): void | Promise<void> {
    const created = this.#longCall?.end(false)
    if (created === undefined) this.#fail(error)
    else
      return this.#settleTask(
        created,
        (task) => this.#failTask(task, error),
        () => this.#fail(error),
      )
  }

  /** Stores the end of a call that became a task; `answer` answers a call that did not become one after all. */
  async #settleTask(
    created: Promise<OwnedTask | undefined>,
    store: (task: OwnedTask) => Promise<void>,
    answer: () => void | Promise<void>,
  ): Promise<void> {
    const task = await created
    if (task !== undefined && this.#isTask) {
      await store(task)
      this.#release()
      this.#finish()
    } else await answer()
  }

  /** A question that cannot be signed stays the reply of the tool. */
  #succeedOrAsk(outcome: ToolOutcome): void | Promise<void> {
    const { input } = outcome
    if (input === undefined || this.#identity === undefined || this.#over) {
      this.#succeed(outcome)
      return
    }
    return this.#ask({ ...input, responses: {} }, this.#identity).catch((error: unknown) => {
      this.#environment.failed(error, this.#exchange.request)
      this.#succeed(outcome)
    })
  }

  #failTask(task: OwnedTask, error: unknown): Promise<void> {
    if (!(error instanceof JsonRpcError) && !(error instanceof CallEnded)) {
      this.#environment.failed(error, this.#exchange.request)
    }
    return task.fail(error)
  }

  #succeed(outcome: ToolOutcome): void {
    const { settlement, isError, missing } = outcome
    const { settlements } = this.#environment
    const nobodyWaits = this.#over || this.#exchange.abandoned
    if (nobodyWaits) {
      this.#release()
      this.#finish()
      if (settlement !== undefined) settlements.settle(settlement, 'rollback')
      this.#exchange.finish('disconnected')
      return
    }
    if (missing !== undefined && this.#exchange.refuseScope(this.#id, missing)) {
      this.#release()
      this.#finish()
      return
    }
    let members: ReturnType<typeof resultMembers>
    try {
      members = resultMembers(outcome)
    } catch (error) {
      if (settlement !== undefined) settlements.settle(settlement, 'rollback')
      this.#fail(error)
      return
    }
    this.#release()
    this.#finish()
    this.#exchange.succeed(this.#id, members, isError ? 'tool_error' : 'success', {
      unsettled: settlement === undefined ? undefined : { settlements, settlement },
    })
  }

  #fail(error: unknown): void {
    const nobodyWaits = this.#over
    this.#release()
    this.#finish()
    if (nobodyWaits) {
      if (!(error instanceof CallEnded)) this.#environment.failed(error, this.#exchange.request)
      return
    }
    if (error instanceof CallEnded && error.reason === 'disconnected') {
      this.#exchange.finish('disconnected')
      return
    }
    if (error instanceof RefusedError) {
      this.#exchange.id = this.#id
      this.#exchange.refuse(error.refusal)
      return
    }
    answerFailure(this.#exchange, this.#id, error, (cause) => this.#environment.failed(cause, this.#exchange.request))
  }

  /** Ends the call after a failure outside the tool. Never throws. */
  #crash(error: unknown): void {
    const exchange = this.#exchange
    this.#environment.failed(error, this.#exchange.request)
    try {
      this.#release()
      this.#finish()
      exchange.id = this.#id
      exchange.crash(error)
    } catch (second) {
      this.#environment.failed(second, exchange.request)
    }
    // A partly written answer cannot be completed.
    if (!exchange.response.writableEnded) exchange.response.destroy()
  }

  #release(): void {
    if (this.#over) return
    this.#over = true
    this.#entry?.remove()
  }

  /**
   * Marks the work as done. Shutdown waits for the tool and not for the answer, because the tool may have messages to
   * reject.
   */
  #finish(): void {
    if (this.#finished) return
    this.#finished = true
    this.#environment.calls.finish()
    this.#exchange.hold?.release()
  }
}
