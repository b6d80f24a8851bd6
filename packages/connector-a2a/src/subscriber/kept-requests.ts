import type { HeldBytes } from '@signalbox/http-kit/internal'
import { decodeText, encodeText } from '@signalbox/broker-core'
import type { JsonObject } from '@signalbox/http-kit'

import type { AgentQuery, LoggedRequest } from '../requests/agent-query.ts'
import type { AgentReply } from '../requests/agent-reply.ts'
import type { RunWriter } from '../runs/run-writer.ts'
import type { Runs } from '../runs/runs.ts'
import { ServedRun } from '../runs/runs.ts'
import type { AgentBody, AgentStream } from '../stream/agent-stream.ts'
import type { EventConverter } from '../stream/events.ts'
import type { A2aMethod, WireVersion } from '../wire/index.ts'
import type { CallResult } from './agent-call.ts'
import { ACCEPTED, AGENT_BUSY } from './agent-failures.ts'
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

/** The agent that the requests are for. */
export interface KeepingAgent {
  /** Sends a request to an instance that has a place. */
  readonly admit: (request: AdmittedRequest, signal: AbortSignal) => AgentReply | Promise<AgentReply>
  /** Begins a call that continues a run; undefined if the agent is busy. */
  readonly begin: (query: AgentQuery, held: HeldBytes, run: ServedRun) => CallUnderWay | undefined
  /** Ends a call when the relay of its events has ended. */
  readonly relayed: (call: CallUnderWay, relay: () => Promise<void>) => Promise<void>
  /** Sends another request in the place of a call. */
  readonly ask: (call: CallUnderWay, query: AgentQuery) => Promise<CallResult>
  /** Returns the relay of an event stream into the run of a call. */
  readonly streamOf: (
    call: CallUnderWay,
    events: AgentBody,
    converter: EventConverter | undefined,
  ) => Promise<AgentStream>
}

/** The state of the node that these requests need. */
interface KeepingNode {
  readonly runs: Runs | undefined
  readonly stopped: AbortSignal
  failed(error: unknown): void
}

/** The time for an agent to say how a task goes on, in ms. */
const RECOVERY_TIMEOUT_MS = 30_000

/** The requests of one agent whose answers are kept, on the node that serves it. */
export class KeptRequests {
  readonly #agentId: string
  readonly #node: KeepingNode
  readonly #agent: KeepingAgent

  constructor(agentId: string, node: KeepingNode, agent: KeepingAgent) {
    this.#agentId = agentId
    this.#node = node
    this.#agent = agent
  }

  /** Sends a request whose answer is kept, if it did not run before. It goes on when its caller leaves. */
  async keep(request: AdmittedRequest, log: LoggedRequest): Promise<AgentReply> {
    const { runs, stopped } = this.#node
    const { mode, ...rest } = request.query
    const run = await (runs ?? missing()).begin(request.query, log)
    if (!(run instanceof ServedRun)) return run
    const logged = { ...log, events: (wire: WireVersion) => run.writer.events(wire) }
    // The answer is kept also if its caller does not wait for it.
    const query: AgentQuery = { ...rest, mode: mode === 'accept' ? 'call' : mode, log: logged }
    const reply = this.#agent.admit({ ...request, query, run }, stopped)
    const kept = this.#kept(reply, query, run)
    if (mode !== 'accept' || !(reply instanceof Promise)) return kept
    kept.catch((error: unknown) => this.#node.failed(error))
    return ACCEPTED
  }

  async #kept(admitted: AgentReply | Promise<AgentReply>, query: AgentQuery, run: ServedRun): Promise<AgentReply> {
    try {
      const reply = await admitted
      if (!isOpened(query, reply)) {
        await run.answered({ agentId: this.#agentId, callerId: query.callerId }, query, reply)
      }
      return reply
    } catch (error) {
      run.end()
      throw error
    }
  }

  /** Continues a run that its node has left. */
  async resume(query: AgentQuery, held: HeldBytes): Promise<AgentReply> {
    const run = query.log && (await this.#node.runs?.takeOver(query, query.log))
    if (run === undefined) return ACCEPTED
    const call = this.#agent.begin(query, held, run)
    if (call === undefined) {
      run.end()
      return AGENT_BUSY
    }
    this.#agent.relayed(call, () => this.recover(call, run)).catch((error: unknown) => this.#node.failed(error))
    return ACCEPTED
  }

  /** Continues a run whose connection to the agent was cut, unless it is over. */
  async recover(call: CallUnderWay, { writer }: ServedRun): Promise<void> {
    await writer.written()
    if (writer.isOver) return
    const { recoverRun } = await import('../runs/recovery.ts')
    const stopped = this.#node.runs?.leaving ?? this.#node.stopped
    await recoverRun(writer, { stopped, ask: (method, params) => this.#askOfTask(call, writer, method, params) })
  }

  /** Asks the agent about the task of a run. Events go into the run. */
  async #askOfTask(
    call: CallUnderWay,
    writer: RunWriter,
    { names, streams }: A2aMethod,
    params: JsonObject,
  ): Promise<string | null | undefined> {
    const { wire: version = '1.0' } = writer
    const { query } = call
    const body = encodeText(JSON.stringify({ jsonrpc: '2.0', id: 1, method: names[version], params }))
    const asked: AgentQuery = {
      ...query,
      mode: streams ? 'stream' : 'call',
      body,
      timeoutMs: RECOVERY_TIMEOUT_MS,
      wire: { agentId: this.#agentId, version, answer: 'native' },
      log: query.log && { ...query.log, events: (wire) => writer.events(wire) },
    }
    const { reply, events, converter } = await this.#agent.ask(call, asked)
    if (events === undefined) return reply.failure === undefined ? (decodeText(reply.body) ?? null) : null
    const stream = await this.#agent.streamOf({ ...call, query: asked }, events, converter)
    await stream.run()
    return undefined
  }
}

/** Returns true if a reply opened a stream of events. */
function isOpened({ mode }: AgentQuery, { failure, status, whole }: AgentReply): boolean {
  return mode === 'stream' && failure === undefined && whole !== true && status >= 200 && status < 300
}

function missing(): never {
  throw new TypeError('this node keeps no log of runs (CONNECTORSA2_A_LOG is off)')
}
