import { randomUUID } from 'node:crypto'

import { decodeText, encodeText, isBrokerError } from '@signalbox/broker-core'
import type { ClaimedKey } from '@signalbox/broker-core/internal'
import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { jsonRpcErrorText } from '@signalbox/http-kit/internal'
import type { AgentCard } from '@signalbox/registry'
import { agentOptions } from '@signalbox/registry'

import { A2A_CODES, errorDetails, NativeError } from '../native/errors.ts'
import type { AgentQuery } from '../requests/agent-query.ts'
import type { AgentReply, ParkedReply } from '../requests/agent-reply.ts'
import { NO_ANSWER, wholeReply } from '../requests/agent-reply.ts'
import { DELIVERY, foldRun } from '../runs/folded-task.ts'
import { lastEventOf } from '../runs/chunks.ts'
import type { RunChunk, RunLog } from '../runs/run-log.ts'
import { cursorText, newRun, parseCursor } from '../runs/run-log.ts'
import type { LoggedTasks } from '../runs/logged-tasks.ts'
import { mayRead } from '../runs/logged-tasks.ts'
import type { Runs } from '../runs/runs.ts'
import type { A2aMethod, WireVersion } from '../wire/index.ts'
import { taskRequest } from '../subscriber/isolation/task-isolation.ts'
import { findMethod, isObject, METHODS, parseForTranslation, translateRequest, translateResult } from '../wire/index.ts'
import type { Inbox, ParkedMessage } from './inbox.ts'
import { inboxQueue } from './inbox.ts'
import type { KnownRun, ParkedPhase } from './parked-index.ts'

export interface InboxAnswersOptions {
  readonly inbox: Inbox
  readonly log: RunLog
  readonly runs: Runs
  readonly tasks: LoggedTasks
}

/** A request, parsed, with its params in A2A 1.0. */
interface ParsedRequest {
  readonly method: A2aMethod
  readonly params: JsonObject
}

const MAX_PAGE = 100
const DEFAULT_PAGE = 50

/** A page with tasks of this size has no further ones. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024

/** The answers of the gateway in place of an agent whose requests are parked. */
export class InboxAnswers {
  readonly #options: InboxAnswersOptions

  constructor(options: InboxAnswersOptions) {
    this.#options = options
  }

  /** Returns true for a request that names a task of an inbox, or that can only be answered without the agent. */
  async owns(query: AgentQuery, card: AgentCard): Promise<boolean> {
    const resumes = query.mode === 'resume'
    if (card['offline'] === true && !resumes) return true
    const runs = resumes ? [query.log?.run ?? ''] : taskRequest(query.body).taskIds
    const states = await Promise.all(runs.map((run) => this.#options.inbox.find(run)))
    return states.some((state) => state?.agentId === card.agent_id)
  }

  /** Returns true for a request that may be parked. */
  isSend(query: AgentQuery): boolean {
    return taskRequest(query.body).kind === 'begin'
  }

  /** Answers a request: parks a message, or reads or changes a task. @throws BrokerError ENGINE_UNAVAILABLE */
  async answer(query: AgentQuery, card: AgentCard): Promise<AgentReply> {
    try {
      if (query.mode === 'resume') {
        await this.#options.inbox.settle(query.log?.run ?? '')
        return { ...NO_ANSWER, status: 202 }
      }
      const { method, params } = parsedRequest(query)
      switch (method.operation) {
        case 'send':
        case 'stream':
          return await this.#send(query, card, params)
        case 'get':
          return await this.#get(query, card, params)
        case 'list':
          return answered(query, method, await this.#list(query, card, params))
        case 'cancel':
          return await this.#cancel(query, card, params)
        case 'resubscribe':
          return await this.#subscribe(query, card, params)
        default:
          throw unsupported(
            `the agent ${card.agent_id} has no address, so that it has no answer to ${method.names['1.0']}`,
          )
      }
    } catch (error) {
      if (error instanceof InboxFull)
        return { ...NO_ANSWER, executed: false, status: 0, error: error.message, failure: 'inbox_full', unsent: true }
      if (error instanceof JsonRpcError) return failed(error)
      throw error
    }
  }

  async #get(query: AgentQuery, card: AgentCard, params: JsonObject): Promise<AgentReply> {
    const isParked = (await this.#options.inbox.find(String(params['id']))) !== undefined
    // An agent that is away may have begun the task when it was there.
    const kept = isParked ? undefined : await this.#options.tasks.answer(query, card)
    return kept ?? answered(query, METHODS.get, await this.#task(await this.#readable(query, card, params), params))
  }

  async #send(query: AgentQuery, card: AgentCard, params: JsonObject): Promise<AgentReply> {
    const { inbox, runs } = this.#options
    // A repeated message may find its task in another phase.
    const earlier = query.log && (await runs.earlier(query.callerId, query.log))
    const begun = earlier && (await this.#begun(earlier, card))
    if (earlier !== undefined && begun === undefined) return this.#repeated(earlier, card)
    const { state } = begun ?? {}
    const message = isObject(params['message']) ? params['message'] : {}
    const { taskId } = message
    const after = state ?? (taskId === undefined ? undefined : await this.#continued(query, card, taskId))
    const run = after?.run ?? begun?.run ?? query.log?.run ?? newRun()
    if (state === undefined) this.#assertSpace(query, card)
    const { task, sequence } = await this.#taskWith(message, run, card, after)
    if (state !== undefined) await inbox.log.begin(state, task, await inbox.log.end(run))
    else {
      const claimed =
        begun === undefined && query.log !== undefined
          ? await runs.claim(query.callerId, query.log, { run, sequence })
          : undefined
      if (claimed !== undefined && 'status' in claimed) return this.#repeated(claimed, card)
      const contextId = String(task['contextId'])
      const request = { ...params, message: { ...message, taskId: run, contextId } }
      const { callerId, headers } = query
      await this.#park(card, { run, callerId, contextId, request, headers, after, task }, claimed)
    }
    if (query.log === undefined) return answered(query, METHODS.send, { task })
    return { ...NO_ANSWER, follow: cursorText({ run, sequence }), parked: this.#waits(card) }
  }

  /** Parks a message. Its key is released only if it certainly is not in the queue: a repetition parks it again. */
  async #park(card: AgentCard, message: ParkedMessage, claimed: ClaimedKey | undefined): Promise<void> {
    let refusal: Error
    try {
      if (await this.#options.inbox.park(card, message)) return
      refusal = unsupported('the task was continued by another message')
    } catch (error) {
      if (!isBrokerError(error, 'QUEUE_FULL')) throw error
      refusal = new InboxFull(`the inbox ${inboxQueue(card.agent_id)} is full`)
    }
    await claimed?.release().catch(() => {})
    throw refusal
  }

  #waits(card: AgentCard): ParkedReply {
    return this.#options.inbox.isHeard(card) ? 'wait' : 'at_once'
  }

  /** Returns the reply for a repeated message: one whose task still waits for a lessee is answered as the first was. */
  async #repeated(earlier: AgentReply, card: AgentCard): Promise<AgentReply> {
    const cursor = earlier.follow === undefined ? undefined : parseCursor(earlier.follow)
    const phase = cursor && (await this.#options.inbox.find(cursor.run))?.phase
    if (phase === undefined || phase === 'waiting' || phase === 'done') return earlier
    return { ...earlier, parked: this.#waits(card) }
  }

  /**
   * Returns the run of an earlier request with the same key whose message has no event yet, because its node was lost or
   * the store was full. If it was parked, this is with its state. Otherwise to park it again does no harm: of two items
   * of a run, one is dropped. But an agent that is called may have got it.
   */
  async #begun(
    { follow }: AgentReply,
    card: AgentCard,
  ): Promise<{ readonly run: string; readonly state: KnownRun | undefined } | undefined> {
    const { run = '', sequence } = (follow === undefined ? undefined : parseCursor(follow)) ?? {}
    const { inbox } = this.#options
    if (sequence === undefined || (await inbox.log.end(run)).sequence !== sequence) return undefined
    const state = await inbox.find(run)
    if (state?.phase === 'done' || (state === undefined && !agentOptions(card).pull)) return undefined
    return { run, state: state?.phase === 'waiting' ? undefined : state }
  }

  /** Returns the task that a message continues. @throws JsonRpcError for one that does not wait for a message */
  async #continued(query: AgentQuery, card: AgentCard, taskId: unknown): Promise<KnownRun> {
    const found = await this.#readable(query, card, { id: taskId })
    if (found.callerId !== query.callerId) throw notFound(taskId)
    const state = await this.#options.inbox.afterEvents(found)
    if (state?.phase === 'waiting') return state
    const why = state?.phase === 'done' ? 'it is over' : 'it does not wait for a message'
    throw unsupported(`the task ${found.run} takes no message: ${why}`)
  }

  /** @throws InboxFull */
  #assertSpace({ callerId }: AgentQuery, card: AgentCard): void {
    const { tasks } = this.#options.inbox
    const { queue } = agentOptions(card)
    if (tasks.inQueue(card.agent_id) >= queue.maxMessages) {
      throw new InboxFull(
        `the inbox of ${card.agent_id} has ${queue.maxMessages} requests, its limit (a2a.queue.max_messages)`,
      )
    }
    if (tasks.inQueue(card.agent_id, callerId) >= queue.maxPerCaller) {
      throw new InboxFull(
        `the caller has ${queue.maxPerCaller} requests in the inbox of ${card.agent_id}, the limit of each (a2a.queue.max_per_caller)`,
      )
    }
  }

  /** Returns the task of a message as it is now, with the message in its history, and the sequence of its last event. */
  async #taskWith(
    given: JsonObject,
    run: string,
    card: AgentCard,
    after: KnownRun | undefined,
  ): Promise<{ readonly task: JsonObject; readonly sequence: number }> {
    const { contextId = after?.contextId ?? randomUUID() } = given
    const message = { ...given, taskId: run, contextId }
    const common = {
      status: { state: 'TASK_STATE_SUBMITTED', timestamp: new Date().toISOString() },
      metadata: { [DELIVERY]: storedNow(card, this.#options.inbox) },
    }
    if (after === undefined) return { task: { id: run, contextId, ...common, history: [message] }, sequence: 0 }
    const { folded, last } = await this.#fold(run)
    const { history, ...task } = folded.task ?? { id: run, contextId }
    const before: readonly unknown[] = Array.isArray(history) ? history : []
    return { task: { ...task, ...common, history: [...before, message] }, sequence: sequenceOf(last) }
  }

  async #cancel(query: AgentQuery, card: AgentCard, params: JsonObject): Promise<AgentReply> {
    const state = await this.#readable(query, card, params)
    const canceled = await this.#options.inbox.cancel(state.run)
    if (canceled === undefined) {
      const text = `the task ${state.run} is over, so that it cannot be canceled`
      throw new NativeError(TASK_NOT_CANCELABLE, 'TASK_NOT_CANCELABLE', text)
    }
    return answered(query, METHODS.cancel, await this.#task(canceled, {}))
  }

  async #subscribe(query: AgentQuery, card: AgentCard, params: JsonObject): Promise<AgentReply> {
    const state = await this.#readable(query, card, params)
    if (state.phase === 'done') {
      throw unsupported('the task has ended, so that it has no further events; read it with GetTask')
    }
    const { last } = await this.#fold(state.run)
    return { ...NO_ANSWER, follow: cursorText({ run: state.run, sequence: sequenceOf(last) }), parked: 'snapshot' }
  }

  async #list(query: AgentQuery, card: AgentCard, params: JsonObject): Promise<JsonObject> {
    const { contextId, pageSize: given, pageToken } = params
    const pageSize = Math.min(Math.max(Number(given ?? DEFAULT_PAGE) || DEFAULT_PAGE, 1), MAX_PAGE)
    const all = this.#options.inbox.tasks.of(card.agent_id).filter((state) => mayRead(query, card, state.callerId))
    const wanted = all
      .filter((state) => contextId === undefined || contextId === '' || state.contextId === contextId)
      .toReversed()
    const from =
      typeof pageToken === 'string' && pageToken !== '' ? wanted.findIndex(({ run }) => run === pageToken) : 0
    if (from === -1)
      throw new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, 'invalid params: pageToken names no page of this list')
    const withArtifacts = params['includeArtifacts'] === true
    const { status } = params
    const tasks: JsonObject[] = []
    let bytes = 0
    let at = from
    // One after another: each may have many events.
    for (let state = wanted[at]; state !== undefined && at < from + pageSize && bytes < MAX_PAGE_BYTES;) {
      const task = await this.#task(state, { historyLength: 0, ...params }, withArtifacts)
      if (status === undefined || (isObject(task['status']) && task['status']['state'] === status)) tasks.push(task)
      bytes += JSON.stringify(task).length
      state = wanted[++at]
    }
    return { tasks, nextPageToken: wanted[at]?.run ?? '', pageSize, totalSize: wanted.length }
  }

  /** Returns a task as a caller reads it. */
  async #task(state: KnownRun, { historyLength }: JsonObject, withArtifacts = true): Promise<JsonObject> {
    const { folded } = await this.#fold(state.run)
    const { artifacts, history, metadata, ...task } = folded.task ?? taskWithoutEvents(state)
    const messages: readonly unknown[] = Array.isArray(history) ? history : []
    const shown =
      typeof historyLength === 'number'
        ? messages.slice(messages.length - Math.min(historyLength, messages.length))
        : messages
    const delivery = { [DELIVERY]: deliveryOf(state, this.#options.inbox) }
    return {
      ...task,
      ...(artifacts === undefined || !withArtifacts ? {} : { artifacts }),
      ...(shown.length === 0 ? {} : { history: shown }),
      metadata: { ...(isObject(metadata) ? metadata : {}), ...delivery },
    }
  }

  #fold(run: string): ReturnType<typeof foldRun> {
    return foldRun(this.#options.log, run)
  }

  /** Returns a task that the caller may read. @throws NativeError TASK_NOT_FOUND */
  async #readable(query: AgentQuery, card: AgentCard, { id }: JsonObject): Promise<KnownRun> {
    const state = typeof id === 'string' ? await this.#options.inbox.find(id) : undefined
    if (state === undefined || state.agentId !== card.agent_id || !mayRead(query, card, state.callerId))
      throw notFound(id)
    return state
  }
}

function sequenceOf(last: RunChunk | undefined): number {
  return last === undefined ? 0 : lastEventOf(last)
}

const TASK_NOT_CANCELABLE = -32002

/** Returns the metadata of a message that is parked now, as the last one. */
function storedNow(card: AgentCard, inbox: Inbox): JsonObject {
  const expiresAt = Date.now() + agentOptions(card).queue.ttlSeconds * 1000
  return {
    state: 'stored',
    position: inbox.tasks.stored(card.agent_id) + 1,
    expires_at: new Date(expiresAt).toISOString(),
  }
}

/** Returns a task whose events the log does not have any more. */
function taskWithoutEvents({ contextId, outcome, phase, run: id }: KnownRun): JsonObject {
  return { id, contextId, status: { state: outcome?.state ?? STATES[phase] } }
}

const STATES: Readonly<Record<ParkedPhase, string>> = {
  stored: 'TASK_STATE_SUBMITTED',
  delivered: 'TASK_STATE_SUBMITTED',
  working: 'TASK_STATE_WORKING',
  waiting: 'TASK_STATE_INPUT_REQUIRED',
  done: 'TASK_STATE_UNSPECIFIED',
}

/** Returns how far a request of an inbox is, for the metadata of its task. */
function deliveryOf(state: KnownRun, inbox: Inbox): JsonObject {
  const { attempt, expiresAt, phase } = state
  if (phase === 'stored') {
    const position = inbox.tasks.positionOf(state)
    return { state: 'stored', position, expires_at: new Date(expiresAt).toISOString() }
  }
  if (phase === 'delivered') return { state: 'delivered', attempt }
  return { state: phase === 'done' ? 'done' : 'working' }
}

/** Parses a request, with its params in A2A 1.0. @throws JsonRpcError for a method or params that are not A2A's */
function parsedRequest(query: AgentQuery): ParsedRequest {
  const request = parseForTranslation(decodeText(query.body) ?? '')
  const { method: name, params: given } = isObject(request) ? request : {}
  const method = typeof name === 'string' ? findMethod(name)?.method : undefined
  if (method === undefined) throw new JsonRpcError(JSON_RPC_CODES.METHOD_NOT_FOUND, `method not found: ${String(name)}`)
  const params = isObject(given) ? given : {}
  return { method, params: translateRequest(method, versionOf(query), '1.0', params) ?? {} }
}

function versionOf({ wire }: AgentQuery): WireVersion {
  return wire?.version ?? '0.3'
}

function answered(query: AgentQuery, method: A2aMethod, result: unknown): AgentReply {
  const translated = translateResult(method, '1.0', versionOf(query), result)
  return wholeReply({ result: translated })
}

function failed(error: JsonRpcError): AgentReply {
  return { ...NO_ANSWER, body: encodeText(jsonRpcErrorText(error, 'null')), whole: true }
}

function notFound(id: unknown): NativeError {
  return new NativeError(A2A_CODES.TASK_NOT_FOUND, 'TASK_NOT_FOUND', `Task not found: ${String(id)}`)
}

function unsupported(text: string): JsonRpcError {
  return new JsonRpcError(A2A_CODES.UNSUPPORTED_OPERATION, text, { data: errorDetails('UNSUPPORTED_OPERATION') })
}

/** An inbox is full. */
class InboxFull extends Error {
  override readonly name = 'InboxFull'
}
