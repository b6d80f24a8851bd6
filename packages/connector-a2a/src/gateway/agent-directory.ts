import { decodeText } from '@signalbox/broker-core'
import type { Caller } from '@signalbox/broker-core'
import type { AgentDirectory, AgentRefusal, AgentReply, InboxLeases } from '@signalbox/broker-core/ports'
import { hasRole } from '@signalbox/http-kit'
import { allSteps, isJsonObject, LARGE_BODY_BYTES } from '@signalbox/http-kit/internal'
import type { AgentCard, AgentInbox, AgentRegistry } from '@signalbox/registry'
import { InboxError, isParkable, RegistryError } from '@signalbox/registry'

import type { AgentCallEvent } from '../options.ts'
import type { AgentRequestOptions, AgentRequests } from '../requests/agent-requests.ts'
import { a2aVersionOf, findMethod, parseForTranslation } from '../wire/index.ts'
import { agentAnswer, DIALECT } from './call-protocol.ts'
import type { Call } from './call.ts'
import type { LoggedCalls } from './logged-calls.ts'

/** The parts of a gateway that its directory uses. */
interface GatewayParts {
  readonly logged: LoggedCalls | undefined
  readonly inbox: AgentInbox | undefined
  /** Receives the end of each call. */
  readonly onFinished: ((event: AgentCallEvent) => void) | undefined
}

/**
 * Returns the registry and the requests as other connectors use them. The directory of an `a2aConnector` also has its
 * log and inboxes: prefer it.
 */
export function agentDirectory(
  registry: Pick<AgentRegistry, 'find' | 'list'>,
  requests: AgentRequests,
): AgentDirectory {
  return {
    list: async (page) => registry.list(page),
    get: (agentId) => registry.find(agentId),
    request: (agentId, envelope, { method, ...options }) => requests.request(agentId, envelope, wired(method, options)),
  }
}

/** Returns the agents as other connectors use them, with the log and the inboxes of a gateway. */
export function gatewayDirectory(
  registry: Pick<AgentRegistry, 'find' | 'heartbeat' | 'list'>,
  requests: AgentRequests,
  { logged, inbox, onFinished }: GatewayParts,
): AgentDirectory {
  const directory: AgentDirectory = {
    ...agentDirectory(registry, requests),
    inboxes: inbox && inboxesOf(registry, inbox),
    async request(agentId, envelope, { method, ...options }) {
      const request = wired(method, options)
      const kept = logged?.of({}, agentId, callOf(envelope, method, request), request)
      if (logged === undefined || kept === undefined || kept.call.operation !== 'send') {
        return requests.request(agentId, envelope, request)
      }
      if (options.acceptOnly !== true) return (await logged.send(kept)).answer
      const reply = await requests.request(agentId, envelope, { ...request, log: kept.log })
      // A repeat is accepted as the first one was.
      return reply.follow === undefined ? reply : { ...reply, executed: true }
    },
  }
  return onFinished === undefined ? directory : { ...directory, request: reported(directory, onFinished) }
}

/** Returns the requests of a directory, each of which reports its end. */
function reported(directory: AgentDirectory, onFinished: (event: AgentCallEvent) => void): AgentDirectory['request'] {
  return async (agentId, envelope, options) => {
    const startedAt = performance.now()
    let status: AgentCallEvent['status'] = 'error'
    try {
      const reply = await directory.request(agentId, envelope, options)
      if (options.acceptOnly === true ? reply.executed : isResult(agentId, reply)) status = 'success'
      return reply
    } finally {
      const firstByteSeconds = (performance.now() - startedAt) / 1000
      onFinished({ agentId, clientId: options.caller.clientId, status, firstByteSeconds })
    }
  }
}

/** Returns `true` if the agent answered with a result. A long answer is not read for this: the caller reads it. */
function isResult(agentId: string, reply: AgentReply): boolean {
  if (!reply.executed || reply.failure !== undefined) return false
  if (reply.body.byteLength > LARGE_BODY_BYTES) return true
  try {
    return 'result' in allSteps(agentAnswer(agentId, { ...reply, failure: undefined }))
  } catch {
    return false
  }
}

/** Adds the version of A2A of a method. The answer stays as the agent gave it. */
function wired(method: string, options: AgentRequestOptions): AgentRequestOptions {
  const version = a2aVersionOf(method)
  return version === undefined ? options : { ...options, wire: { version, answer: 'agent' } }
}

/** Returns a request as a call. Its params are parsed when they are read first: most agents do not keep answers. */
function callOf(body: Uint8Array, method: string, { wire, timeoutMs }: AgentRequestOptions): Call {
  const operation = findMethod(method)?.method.operation
  let parsed: { readonly params: Call['params'] } | undefined
  return {
    body,
    timeoutMs,
    operation,
    protocol: { ...DIALECT, wire },
    get params() {
      parsed ??= { params: paramsOf(body) }
      return parsed.params
    },
  }
}

function paramsOf(body: Uint8Array): Call['params'] {
  const request = parseForTranslation(decodeText(body) ?? '')
  const params = isJsonObject(request) ? request['params'] : undefined
  return isJsonObject(params) ? params : undefined
}

function inboxesOf(registry: Pick<AgentRegistry, 'find' | 'heartbeat'>, inbox: AgentInbox): InboxLeases {
  /** Records a heartbeat, and runs a call with the card of the agent. */
  async function withCard<T>(
    agentId: string,
    { clientId, ...caller }: Caller,
    call: (card: AgentCard) => Promise<T>,
  ): Promise<T | AgentRefusal> {
    try {
      await registry.heartbeat(agentId, { clientId, admin: hasRole({ clientId, ...caller }, 'Admin') })
      const card = await registry.find(agentId)
      if (card !== undefined && isParkable(card)) return await call(card)
      return {
        refused: 'INBOX_NOT_FOUND',
        message: `the agent ${JSON.stringify(agentId)} has no inbox; register it with "a2a": {"pull": true} and without url`,
      }
    } catch (error) {
      if (error instanceof InboxError || error instanceof RegistryError) {
        return { refused: error.code, message: error.message }
      }
      throw error
    }
  }
  return {
    take: (agentId, { caller, ...options }) =>
      withCard(agentId, caller, async (card) => (await inbox.lease(card, { max: 1, ...options }))[0]),
    reply: (agentId, { caller, ...input }) => withCard(agentId, caller, (card) => inbox.events(card, input)),
    release: (agentId, { caller, receipt }) =>
      withCard(agentId, caller, async (card) => {
        await inbox.nack(card, { receipt })
        return undefined
      }),
  }
}
