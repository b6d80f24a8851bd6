import { decodeText, encodeText } from '@signalbox/broker-core'
import type { ConnectionCaller, JsonObject } from '@signalbox/http-kit'
import { hasRole, JSON_RPC_CODES } from '@signalbox/http-kit'
import type { AgentCard } from '@signalbox/registry'
import { agentOptions } from '@signalbox/registry'

import type { Call } from '../gateway/call.ts'
import { A2A_CODES, NativeError } from '../native/errors.ts'
import type { AgentLookup, ResolvedA2aOptions } from '../options.ts'
import type { AgentReply } from '../requests/agent-reply.ts'
import { wholeReply } from '../requests/agent-reply.ts'
import type { AgentRequests } from '../requests/agent-requests.ts'
import { lastEventOf } from '../runs/chunks.ts'
import { foldRun } from '../runs/folded-task.ts'
import { runChunks } from '../runs/run-chunks.ts'
import type { RunChunk } from '../runs/run-log.ts'
import { seenTask } from '../runs/seen-task.ts'
import type { A2aMethod, WireVersion } from '../wire/index.ts'
import {
  asksForPush,
  isObject,
  memberOf,
  METHODS,
  parsedJson,
  parseForTranslation,
  requestTo,
  translateRequest,
  translateResult,
} from '../wire/index.ts'
import type { PushConfig } from './push-config.ts'
import { channelOf, readConfigId, readPushConfig, readTaskId, subscriptionId } from './push-config.ts'
import type { PushSubscriptions } from './push-configurations.ts'
import { PushConfigurations, RETRY_SECONDS, shown } from './push-configurations.ts'
import type { RunSourceParts } from './run-source.ts'
import { positionText, RunSource } from './run-source.ts'

export interface PushCallsParts extends RunSourceParts {
  readonly push: PushSubscriptions
  readonly registry: Pick<AgentLookup, 'get'>
  readonly requests: AgentRequests
  readonly isolation: ResolvedA2aOptions['taskIsolation']
  readonly failed: (error: unknown) => void
}

/** A message whose configuration of push notifications the gateway has taken over. */
export interface TakenConfig {
  /** The message without the configuration. */
  readonly call: Call
  /** Creates the configuration for the task of a run that has an answer. @throws JsonRpcError */
  answered(run: string, replayed: boolean): Promise<void>
  /** Creates the configuration as soon as the run of a stream has a task. */
  opened(run: string, replayed: boolean): void
}

/** A configuration that came with a message. */
interface BegunConfig {
  readonly agentId: string
  readonly config: PushConfig
  readonly caller: ConnectionCaller
  /** The sequence of the last event of the task's run before the message. */
  readonly before: number
}

/** A task whose configurations a caller may see. */
interface VisibleTask {
  /** The run of the last message; undefined if its events are not kept. */
  readonly run: string | undefined
}

/** Push notifications of the agents whose answers are kept: the gateway answers the calls about them. */
export class PushCalls {
  readonly #parts: PushCallsParts
  readonly #configurations: PushConfigurations
  readonly #closed = new AbortController()
  readonly #unregister: () => void

  constructor(parts: PushCallsParts) {
    this.#parts = parts
    this.#configurations = new PushConfigurations(parts.push)
    this.#unregister = parts.push.registerSource(new RunSource(parts))
  }

  /** Answers a call about configurations; undefined for any other call, and for other agents. @throws JsonRpcError */
  async answer(agentId: string, call: Call, caller: ConnectionCaller): Promise<AgentReply | undefined> {
    const card = this.#served(agentId)
    const { operation } = call
    if (card === undefined || operation === undefined || !operation.startsWith('push-')) return undefined
    const method = METHODS[operation]
    const version = versionOf(call)
    const params = translateRequest(method, version, '1.0', call.params) ?? {}
    const result = await this.#configs(method, params, { card, caller, version })
    return wholeReply({ result: translateResult(method, '1.0', version, result) })
  }

  /**
   * Takes a configuration out of a message; undefined if it has none, or the agent sends its notifications itself.
   * @throws JsonRpcError for a configuration that could not be created
   */
  async take(agentId: string, call: Call, caller: ConnectionCaller): Promise<TakenConfig | undefined> {
    const { operation, params } = call
    if (operation === undefined || !asksForPush(METHODS[operation], params)) return undefined
    const card = this.#served(agentId)
    if (card === undefined) return undefined
    const version = versionOf(call)
    const config = readPushConfig(
      inlineConfig(call, version),
      'params.configuration.taskPushNotificationConfig',
      version,
    )
    const message = isObject(params?.['message']) ? params['message'] : {}
    const named = memberOf(message, 'taskId')
    const taskId = typeof named === 'string' ? named : ''
    // A new task has no configurations yet.
    await this.#configurations.check(agentId, taskId, config, caller)
    // All turns of a task in an inbox are one run.
    const last = taskId === '' ? undefined : await this.#parts.log.last(taskId)
    const begun: BegunConfig = { agentId, config, caller, before: last === undefined ? 0 : lastEventOf(last) }
    return {
      call: withoutConfig(call),
      answered: async (run, replayed) => {
        const first = await this.#parts.log.first(run)
        if (first !== undefined) await this.#begin(begun, first, run, replayed)
      },
      opened: (run, replayed) => {
        this.#whenBegun(begun, run, replayed).catch((error: unknown) => {
          if (!this.#closed.signal.aborted) this.#parts.failed(error)
        })
      },
    }
  }

  close(): void {
    this.#closed.abort()
    this.#unregister()
  }

  #served(agentId: string): AgentCard | undefined {
    const card = this.#parts.registry.get(agentId)
    return card !== undefined && pushesFor(card) ? card : undefined
  }

  async #whenBegun(begun: BegunConfig, run: string, replayed: boolean): Promise<void> {
    const { agentId, caller } = begun
    const { account, identity } = caller
    const read = { run, agentId, clientId: identity.clientId, account, isExpected: true }
    for await (const chunk of runChunks(this.#parts, read, this.#closed.signal)) {
      if (await this.#begin(begun, chunk, run, replayed)) return
    }
  }

  /** Creates the configuration of a message. Resolves with false if the chunk names no task yet. */
  async #begin(
    { agentId, before, caller, config }: BegunConfig,
    chunk: RunChunk,
    run: string,
    replayed: boolean,
  ): Promise<boolean> {
    const { push, records } = this.#parts
    const taskId = chunk.taskId ?? (chunk.reply && seenTask(parsedJson(chunk.reply.body))?.taskId)
    if (taskId === undefined) return false
    const id = subscriptionId(agentId, taskId, config.id ?? taskId)
    const known = await push.find(id)
    // A repeated message has its configuration, or had it until its task ended.
    if (replayed && (known !== undefined || (await this.#isOver(run)))) return true
    // Without isolation, a plain answer leaves no record of the task.
    if (run !== taskId) await records.add(agentId, taskId, chunk.callerId, run)
    const sequence = run === taskId ? before : 0
    await this.#configurations.put(agentId, taskId, config, caller, positionText({ run, sequence }))
    return true
  }

  async #isOver(run: string): Promise<boolean> {
    return (await foldRun(this.#parts.log, run)).folded.phase === 'over'
  }

  async #configs(
    { operation }: A2aMethod,
    params: JsonObject,
    {
      card,
      caller,
      version,
    }: { readonly card: AgentCard; readonly caller: ConnectionCaller; readonly version: WireVersion },
  ): Promise<unknown> {
    const { agent_id: agentId } = card
    const taskId = readTaskId(params)
    const reads = operation === 'push-get' || operation === 'push-list'
    const config = operation === 'push-create' ? readPushConfig(params, 'params', version) : undefined
    const configId = reads || operation === 'push-delete' ? readConfigId(params) : undefined
    const { run } = await this.#task(card, taskId, caller, reads)
    if (config !== undefined) {
      const position = await this.#now(run)
      const created = await this.#configurations.put(agentId, taskId, config, caller, position)
      const { credentials, scheme, token } = config
      return {
        ...shown(created),
        ...(token === undefined ? {} : { token }),
        ...(scheme === undefined ? {} : { authentication: { scheme, ...(credentials ? { credentials } : {}) } }),
      }
    }
    const known = this.#parts.push.ofChannel(channelOf(agentId, taskId))
    if (operation === 'push-list') return { configs: known.map(shown) }
    const found =
      configId === undefined ? known[0] : await this.#parts.push.find(subscriptionId(agentId, taskId, configId))
    if (operation === 'push-get') {
      if (found !== undefined) return shown(found)
      const which = configId === undefined ? '' : ` ${configId}`
      throw notFound(`the task ${taskId} has no push notification configuration${which}`)
    }
    if (found !== undefined) await this.#configurations.delete(found)
    return {}
  }

  /** Returns a task that the caller may use. @throws JsonRpcError TASK_NOT_FOUND */
  async #task(
    card: AgentCard,
    taskId: string,
    { account, identity: { clientId, roles = [] } }: ConnectionCaller,
    reads: boolean,
  ): Promise<VisibleTask> {
    const { isolation, log, records, requests } = this.#parts
    const { agent_id: agentId, registered_by: agentOwner } = card
    const mayReadAll = reads && (clientId === agentOwner || hasRole({ clientId, roles }, 'Admin'))
    const isIsolated = isolation !== 'off' && account.startsWith('client:')
    const unknown = notFound(`Task not found: ${taskId}`)
    const recorded = await records.runOf(agentId, taskId)
    if (recorded !== undefined) {
      if (isIsolated && !mayReadAll && recorded.callerId !== clientId) throw unknown
      return recorded
    }
    const first = await log.first(taskId)
    if (first?.agentId === agentId) {
      if (!mayReadAll && first.callerId !== clientId) throw unknown
      return { run: taskId }
    }
    const callerId = await records.callerOf(agentId, taskId)
    const isOthers = callerId === undefined ? isolation === 'strict' : callerId !== clientId
    if (isIsolated && !mayReadAll && isOthers) throw unknown
    // The agent knows whether there is such a task.
    const body = requestTo(METHODS.get, '1.0', { id: taskId })
    const wire = { version: '1.0', answer: 'native' } as const
    const caller = { clientId, account, roles }
    const reply = await requests.request(agentId, body, { caller, wire })
    const answer = reply.failure === undefined ? parsedJson(reply.body) : undefined
    const { error, result } = isObject(answer) ? answer : {}
    if (isObject(result)) return { run: undefined }
    if (isObject(error) && error['code'] === A2A_CODES.TASK_NOT_FOUND) throw unknown
    throw new NativeError(
      JSON_RPC_CODES.INTERNAL_ERROR,
      'AGENT_UNREACHABLE',
      `the agent ${agentId} gave no answer about the task; try again later`,
      { retryAfterSeconds: RETRY_SECONDS },
    )
  }

  /** Returns the position after the events of a task until now; before the last one if the task is over. */
  async #now(run: string | undefined): Promise<string | undefined> {
    if (run === undefined) return undefined
    const { folded, last } = await foldRun(this.#parts.log, run)
    if (last === undefined) return undefined
    // The end of a stream follows the last event of the task.
    const end = last.reply === undefined ? lastEventOf(last) : last.first
    return positionText({ run, sequence: folded.phase === 'over' ? Math.max(0, end - 2) : end })
  }
}

/** Returns true for an agent whose push notifications the gateway sends. */
export function pushesFor(card: AgentCard): boolean {
  return card['a2a'] !== undefined && agentOptions(card).durable
}

function versionOf({ protocol }: Call): WireVersion {
  return protocol.wire?.version ?? '0.3'
}

/** Returns the configuration in a message, in A2A 1.0. */
function inlineConfig({ operation = 'send', params }: Call, version: WireVersion): unknown {
  const translated = translateRequest(METHODS[operation], version, '1.0', params)
  const configuration = translated?.['configuration']
  const given = isObject(configuration) ? configuration : {}
  return memberOf(given, 'taskPushNotificationConfig') ?? memberOf(given, 'pushNotificationConfig')
}

/** The members with a configuration, in the spellings that agents read. */
const MEMBERS = [
  'taskPushNotificationConfig',
  'task_push_notification_config',
  'pushNotificationConfig',
  'push_notification_config',
]

function withoutConfig(call: Call): Call {
  const request = parseForTranslation(decodeText(call.body) ?? '')
  const { params } = isObject(request) ? request : {}
  if (!isObject(request) || !isObject(params) || !isObject(params['configuration'])) return call
  const configuration = { ...params['configuration'] }
  for (const member of MEMBERS) delete configuration[member]
  const stripped = { ...params, configuration }
  return { ...call, body: encodeText(JSON.stringify({ ...request, params: stripped })), params: stripped }
}

function notFound(text: string): NativeError {
  return new NativeError(A2A_CODES.TASK_NOT_FOUND, 'TASK_NOT_FOUND', text)
}
