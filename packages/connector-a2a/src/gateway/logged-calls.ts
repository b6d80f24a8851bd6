import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

import type { BrokerHandle } from '@signalbox/broker-core'
import { BrokerError, isBrokerError } from '@signalbox/broker-core'
import type { JsonObject } from '@signalbox/http-kit'
import { agentOptions } from '@signalbox/registry'

import { NativeError } from '../native/errors.ts'
import type { AgentLookup } from '../options.ts'
import type { LoggedRequest } from '../requests/agent-query.ts'
import type { AgentReply, ParkedReply } from '../requests/agent-reply.ts'
import { NO_ANSWER, wholeReply } from '../requests/agent-reply.ts'
import type { AgentRequestOptions, AgentRequests } from '../requests/agent-requests.ts'
import type { RunCounters } from '../operators/run-counts.ts'
import { lastEventOf } from '../runs/chunks.ts'
import { FoldedTask, foldRun } from '../runs/folded-task.ts'
import { withGap } from '../runs/logged-events.ts'
import type { RunChunk, RunCursor, RunLog } from '../runs/run-log.ts'
import { newRun, parseCursor } from '../runs/run-log.ts'
import { runChunks } from '../runs/run-chunks.ts'
import type { MissingEvents } from '../runs/run-reader.ts'
import { RunReader } from '../runs/run-reader.ts'
import { RunResults } from '../runs/run-results.ts'
import type { OpenedStream } from '../stream/caller-stream.ts'
import { CallerStream } from '../stream/caller-stream.ts'
import type { EventConverter } from '../stream/events.ts'
import { ownFailures } from '../stream/events.ts'
import type { ResolvedStreamLimits, StreamLimits } from '../stream/limits.ts'
import { resolveLimits } from '../stream/limits.ts'
import { NativeEvents, REST_EVENTS, rpcEvents } from '../stream/native-events.ts'
import { OwnEvents } from '../stream/own-events.ts'
import { translateReply } from '../subscriber/wire/translate.ts'
import type { WireVersion } from '../wire/index.ts'
import { isObject, METHODS, parsedJson, requestTo, translateError, translateResult } from '../wire/index.ts'
import type { Call } from './call.ts'
import { returnsAtOnce } from './call.ts'
import { cursorIn, cursorInvalid, digestOfCall, keyIn, messageIdOf } from './repeated-calls.ts'

export interface LoggedCallsParts {
  readonly system: BrokerHandle
  readonly log: RunLog
  readonly registry: Pick<AgentLookup, 'get'>
  readonly requests: AgentRequests
  readonly streamLimits: StreamLimits
  /** Returns true if it is certain that no node serves a run. */
  readonly isLeft: (run: string) => boolean
  readonly failed: (error: unknown) => void
  readonly counters: Pick<RunCounters, 'replays'>
}

/** One call whose answer is kept, with its caller. */
export interface LoggedCall {
  readonly agentId: string
  readonly call: Call
  readonly request: AgentRequestOptions
  readonly log: Omit<LoggedRequest, 'agentId'>
  /** The last event that the caller has; undefined if it has none. */
  readonly cursor: RunCursor | undefined
}

/** The result of a call whose answer is kept; `replayed` if it is that of an earlier call. */
export interface KeptAnswer<T> {
  readonly answer: T
  readonly replayed: boolean
  /** The run that has the answer. */
  readonly run: string
}

type Opened = OpenedStream | { readonly refused: AgentReply }

const KEY_HEADER = 'idempotency-key'
const CURSOR_HEADER = 'last-event-id'

/**
 * The calls whose answers are kept in the log of runs: those with an idempotency key, and all to agents with
 * `a2a.durable`. A call that is repeated gets the answer of the first, and a stream goes on where it broke off.
 */
export class LoggedCalls {
  readonly #parts: LoggedCallsParts
  readonly #limits: ResolvedStreamLimits
  readonly #draining = new AbortController()
  readonly #closed = new AbortController()

  constructor(parts: LoggedCallsParts) {
    this.#parts = parts
    this.#limits = resolveLimits(parts.streamLimits)
  }

  /**
   * Returns a call as one whose answer is kept; undefined if it is not kept.
   * @throws JsonRpcError IDEMPOTENCY_KEY_INVALID, CURSOR_INVALID
   */
  of(headers: IncomingHttpHeaders, agentId: string, call: Call, request: AgentRequestOptions): LoggedCall | undefined {
    const { operation } = call
    const isSend = operation === 'send' || operation === 'stream'
    if (!isSend && operation !== 'resubscribe') return undefined
    const card = this.#parts.registry.get(agentId)
    const isDurable = card?.['a2a'] !== undefined && agentOptions(card).durable
    const header = isSend ? headers[KEY_HEADER] : undefined
    if (header === undefined && !isDurable) return undefined
    const key = header === undefined ? messageIdOf(call) : keyIn(header)
    const cursor = cursorIn(headers[CURSOR_HEADER], isDurable)
    const once = key === undefined || !isSend ? undefined : { key, digest: digestOfCall(call) }
    return { agentId, call, request, log: { run: newRun(), once }, cursor }
  }

  /** Sends a request, or returns the answer of an earlier one with its key. @throws as AgentRequests.request does */
  async send(logged: LoggedCall): Promise<KeptAnswer<AgentReply>> {
    const { agentId, call, request, log } = logged
    const reply = await this.#parts.requests.request(agentId, call.body, { ...request, log })
    const cursor = cursorOf(reply)
    if (cursor === undefined) return { answer: reply, replayed: false, run: log.run }
    const answer = await this.#answerOf(cursor, logged, reply.parked)
    return { answer, replayed: reply.repeated === true, run: cursor.run }
  }

  /** Opens a stream, or continues an earlier one. @throws as AgentRequests.request does */
  async open(logged: LoggedCall): Promise<KeptAnswer<Opened>> {
    const { agentId, call, cursor, log, request } = logged
    if (cursor !== undefined) {
      await this.#assertReadable(cursor, logged).catch((error: unknown) => {
        if (error instanceof NativeError) this.#parts.counters.replays.refused++
        throw error
      })
      return { answer: await this.#follow(cursor, logged, false), replayed: true, run: cursor.run }
    }
    // Opened before the request, so that no event is missed.
    const reader = await this.#reader(log.run, undefined, logged)
    try {
      const reply = await this.#parts.requests.request(agentId, call.body, { ...request, streamId: log.run, log })
      const earlier = cursorOf(reply)
      if (earlier === undefined && isOpened(reply)) {
        const stream = this.#stream(log.run, log.run, reader, call)
        return { answer: { stream, opened: reply }, replayed: false, run: log.run }
      }
      await reader.close()
      if (earlier === undefined) return { answer: { refused: reply }, replayed: false, run: log.run }
      const shown = reply.parked === 'snapshot' ? (await foldRun(this.#parts.log, earlier.run)).folded.task : undefined
      const answer = await this.#follow(earlier, logged, reply.parked !== undefined, shown)
      return { answer, replayed: reply.repeated === true, run: earlier.run }
    } catch (error) {
      await reader.close()
      throw error
    }
  }

  /**
   * Reads a run from an event on, as soon as it has an answer.
   * @param shown The task as it is after that event, to begin with. @default the events alone
   */
  async #follow(
    { run, sequence }: RunCursor,
    logged: LoggedCall,
    isParked: boolean,
    shown?: JsonObject,
  ): Promise<Opened> {
    const { call } = logged
    const first = await this.#firstChunk(run, logged, isParked)
    if (first.reply !== undefined && (call.protocol.wire?.answer ?? 'events') !== 'events') {
      return { refused: this.#translated(first, call) }
    }
    if (first.reply?.failure !== undefined) return { refused: first.reply }
    const reader = await this.#reader(run, sequence, logged)
    if (shown !== undefined) reader.begin(eventText(call, run, '1.0', { task: shown }) ?? '')
    return { stream: this.#stream(randomUUID(), run, reader, call), opened: NO_ANSWER }
  }

  #stream(id: string, run: string, reader: RunReader, { id: requestId, protocol }: Call): CallerStream {
    return new CallerStream(id, reader, this.#limits, protocol.streamFailures(requestId) ?? ownFailures(run))
  }

  #reader(run: string, after: number | undefined, logged: LoggedCall): Promise<RunReader> {
    const { system, log } = this.#parts
    return RunReader.open({
      system,
      log,
      run,
      after,
      limits: this.#limits,
      converter: (wire) => converterOf(logged.call, run, wire),
      isLeft: () => this.#parts.isLeft(run),
      gap: (missing) => this.#snapshot(run, missing, logged),
      placed: logged.cursor && ((isComplete) => this.#parts.counters.replays[isComplete ? 'complete' : 'gap']++),
      abandoned: () => this.#resume(run, logged),
    })
  }

  /** Ends the calls that wait for a lessee: their requests stay parked. */
  drain(): void {
    this.#draining.abort(stopping())
  }

  /** Ends the calls that wait for an answer. */
  close(): void {
    this.drain()
    this.#closed.abort(stopping())
  }

  #resume(run: string, { agentId, request }: LoggedCall): void {
    this.#parts.requests.resume(agentId, run, request.caller).catch((error: unknown) => {
      // Readers try again.
      if (!isBrokerError(error)) this.#parts.failed(error)
    })
  }

  /** Returns the event in place of removed ones: the task as its agent knows it now. */
  async #snapshot(
    run: string,
    missing: MissingEvents,
    { agentId, call, request }: LoggedCall,
  ): Promise<string | undefined> {
    const taskId = (await this.#parts.log.first(run))?.taskId
    if (taskId === undefined) return undefined
    const version = versionOf(call)
    const wire = { version, answer: 'native' } as const
    const asked = requestTo(METHODS.get, version, { id: taskId })
    const reply = await this.#parts.requests.request(agentId, asked, { caller: request.caller, wire })
    const answer = parsedJson(reply.body)
    const task = isObject(answer) ? answer['result'] : undefined
    if (!isObject(task)) return undefined
    return eventText(call, run, version, withGap(version === '1.0' ? { task } : task, missing))
  }

  /** Waits for the answer of an earlier request, or of one that is parked. */
  async #answerOf(
    { run, sequence }: RunCursor,
    logged: LoggedCall,
    parked: ParkedReply | undefined,
  ): Promise<AgentReply> {
    const { call } = logged
    const results = new RunResults()
    const folded = new FoldedTask()
    const atOnce = parked === 'at_once' || returnsAtOnce(call)
    try {
      for await (const chunk of this.#chunks(run, logged, parked !== undefined)) {
        if (chunk.reply !== undefined) return this.#translated(chunk, call)
        for (const result of results.read(chunk)) folded.add(result)
        if (chunk.first > sequence && (folded.phase !== 'open' || (atOnce && folded.task !== undefined))) break
      }
    } catch (error) {
      // The request stays parked: its caller can read the task later.
      if (parked === undefined || !isBrokerError(error) || folded.task === undefined) throw error
    }
    const version = versionOf(call)
    const { error, result } = folded
    if (error !== undefined) return wholeReply({ error: translateError('1.0', version, error) })
    if (result === undefined) return { ...NO_ANSWER, executed: false, failure: 'unknown', error: NO_RESULT }
    return wholeReply({ result: translateResult(METHODS.send, '1.0', version, result) })
  }

  async #firstChunk(run: string, logged: LoggedCall, isParked: boolean): Promise<RunChunk> {
    for await (const chunk of this.#chunks(run, logged, isParked)) return chunk
    throw new TypeError('a run that was followed has no chunk')
  }

  /**
   * Returns the chunks of a run, also those that are still to be written.
   * @throws BrokerError REQUEST_TIMEOUT, ENGINE_UNAVAILABLE
   */
  async *#chunks(run: string, { agentId, request }: LoggedCall, isParked: boolean): AsyncGenerator<RunChunk> {
    const { caller, signal } = request
    const { account = `client:${caller.clientId}`, clientId } = caller
    const late = AbortSignal.timeout(Math.ceil(this.#parts.requests.timeoutMs(request.timeoutMs)))
    const { signal: over } = isParked ? this.#draining : this.#closed
    const ends = AbortSignal.any(signal === undefined ? [over, late] : [over, late, signal])
    // A lessee writes a run that is parked.
    const isLeft = !isParked && this.#parts.isLeft(run)
    const parts = { ...this.#parts, silenceMs: this.#limits.silenceMs }
    try {
      yield* runChunks(parts, { run, agentId, clientId, account, isExpected: true, isLeft }, ends)
    } catch (error) {
      if (late.aborted && signal?.aborted !== true) {
        throw new BrokerError('REQUEST_TIMEOUT', 'the answer did not come in time')
      }
      throw error
    }
  }

  /** @throws JsonRpcError CURSOR_INVALID for a cursor of another task or caller, or one that is ahead of its run */
  async #assertReadable(cursor: RunCursor, { agentId, call, request }: LoggedCall): Promise<void> {
    const last = await this.#parts.log.last(cursor.run)
    const taskId = call.operation === 'resubscribe' ? call.params?.['id'] : undefined
    const isOwn = last?.agentId === agentId && last.callerId === request.caller.clientId
    const isOfTask = taskId === undefined || last?.taskId === undefined || last.taskId === taskId
    if (last === undefined || !isOwn || !isOfTask) throw cursorInvalid('it names no event of this task')
    const found = await this.#parts.log.find(cursor.run, cursor.sequence)
    if (cursor.sequence === 0 || found === undefined || found.number < last.number) return
    const end = last.reply === undefined ? lastEventOf(last) : last.first
    if (cursor.sequence > end) throw cursorInvalid('it is ahead of the task')
  }

  /** Returns the answer in a chunk in the caller's version of A2A. */
  #translated({ reply = NO_ANSWER, wire }: RunChunk, call: Call): AgentReply {
    const to = call.protocol.wire === undefined ? undefined : versionOf(call)
    const method = call.operation === 'stream' ? METHODS.stream : METHODS.send
    return wire === undefined || to === undefined || wire === to ? reply : translateReply(reply, method, wire, to)
  }
}

function stopping(): BrokerError {
  return new BrokerError('ENGINE_UNAVAILABLE', 'the server is shutting down; try again')
}

const NO_RESULT = 'the request ran, and its events have no answer for this call; repeat it as a stream'

function isOpened({ failure, status, whole }: AgentReply): boolean {
  return failure === undefined && whole !== true && status >= 200 && status < 300
}

function versionOf({ protocol }: Call): WireVersion {
  return protocol.wire?.version ?? '0.3'
}

/** Returns the converter of the events of a run for its caller. */
function converterOf({ id = 'null', protocol }: Call, run: string, wire: WireVersion | undefined): EventConverter {
  const { answer, version } = protocol.wire ?? {}
  if (version === undefined || (answer !== 'native' && answer !== 'rest')) return new OwnEvents(run)
  return new NativeEvents(answer === 'rest' ? REST_EVENTS : rpcEvents(id), { from: wire ?? version, to: version })
}

/** Returns a result of a version of A2A as an event of its caller. */
function eventText(call: Call, run: string, wire: WireVersion, result: unknown): string | undefined {
  const data = JSON.stringify({ jsonrpc: '2.0', id: null, result })
  return converterOf(call, run, wire).next({ event: undefined, data: Buffer.from(data).toString('latin1') })?.text
}

/** Returns the event after which the answer begins that a reply refers to; undefined for a reply that is the answer. */
function cursorOf({ follow }: AgentReply): RunCursor | undefined {
  return follow === undefined ? undefined : parseCursor(follow)
}
