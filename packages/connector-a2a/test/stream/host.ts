import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import { Agent, createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import { ANONYMOUS, createBroker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { agentChannel, decodeAgentQuery } from '../../src/requests/agent-query.ts'
import { AgentRequests } from '../../src/requests/agent-requests.ts'
import { encodeAgentReply } from '../../src/requests/agent-reply.ts'
import { onTestFinished } from 'vitest'

import type { AgentStreamEnd } from '../../src/stream/agent-stream.ts'
import type { CallerStream, StreamEnd } from '../../src/stream/caller-stream.ts'
import type { StreamLimits } from '../../src/stream/limits.ts'
import { NodeBudget } from '../../src/stream/link/node-budget.ts'
import { openStream } from '../../src/stream/caller-stream.ts'
import { publishStreamCancel } from '../../src/stream/link/messages.ts'
import { AgentStream } from '../../src/stream/agent-stream.ts'
import { STREAM_FAILURES } from '../../src/stream/failures.ts'

/** How the two sides of a stream are put together, and what the test wants to shorten. */
export interface HostOptions {
  readonly limits?: StreamLimits
  readonly idleMs?: number
  readonly keepAliveMs?: number
  readonly endsAt?: () => number
  readonly budgetBytes?: number
  /** Milliseconds that the agent has for its headers. */
  readonly timeoutMs?: number
  /** Where it registers its own end. @default the test's end */
  readonly cleanUp?: CleanUp
}

/** Takes what is to be done at the end: vitest's `onTestFinished`, or its `afterAll`. */
export type CleanUp = (end: () => void | Promise<void>) => void

export interface Host {
  readonly base: string
  readonly broker: Broker
  readonly system: BrokerHandle
  readonly budget: NodeBudget
  /** Streams whose client is being served now: the gauge. */
  readonly active: () => number
  /** How streams ended at the client's side, and at the agent's. */
  readonly ends: readonly StreamEnd[]
  readonly relayEnds: readonly AgentStreamEnd[]
  /** Ids of the streams that were asked for, in order. */
  readonly streamIds: readonly string[]
  readonly openRelays: () => number
  readonly cancel: (streamId: string) => Promise<void>
  /** Ends all streams on the client's side as a shutdown does, or on the agent's. */
  readonly closeStreams: () => void
  readonly stopRelays: () => void
}

const NO_BODY = new Uint8Array(0)

/** Serves on a free port until the test is over. */
export async function listen(
  listener: RequestListener,
  cleanUp: CleanUp = onTestFinished,
): Promise<{ server: Server; url: string }> {
  // A thousand clients connect at once: the kernel resets those that the default backlog of 511 has no place for.
  const server = createServer(listener).listen({ port: 0, host: '127.0.0.1', backlog: 4_096 })
  await once(server, 'listening')
  cleanUp(() => {
    server.closeAllConnections()
    server.close()
  })
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/**
 * The smallest gateway and the smallest virtual subscriber around the two sides of a stream, over a real engine:
 * POST / asks the agent at `agentUrl` for a stream.
 */
export async function openHost(agentUrl: string, options: HostOptions = {}): Promise<Host> {
  const {
    limits = {},
    idleMs = 0,
    keepAliveMs,
    endsAt,
    budgetBytes,
    timeoutMs = 10_000,
    cleanUp = onTestFinished,
  } = options
  const path = await mkdtemp(join(tmpdir(), 'signalbox-stream-'))
  const engine = await openEmbeddedEngine({ path })
  const { broker, system } = createBroker(engine)
  const budget = new NodeBudget(budgetBytes)
  const requests = new AgentRequests(system, { defaultTimeoutMs: timeoutMs, maxTimeoutMs: 60_000 })
  const agentConnections = new Agent({ keepAlive: false, maxSockets: Infinity })
  const ends: StreamEnd[] = []
  const relayEnds: AgentStreamEnd[] = []
  const streamIds: string[] = []
  const streams = new Set<CallerStream>()
  const shutdown = new AbortController()
  let active = 0
  let relays = 0

  const tellCancelled = (streamId: string): void => {
    const body = JSON.stringify({ jsonrpc: '2.0', method: 'stream_cancel', params: { stream_id: streamId } })
    const outgoing = httpRequest(agentUrl, { method: 'POST', headers: { 'content-type': 'application/json' } })
    outgoing.on('error', () => {})
    outgoing.on('response', (response) => response.resume())
    outgoing.end(body)
  }

  await system.queries.subscribe(agentChannel('agent'), {}, async (query) => {
    const { body, streamId = '', timeoutMs: deadline } = decodeAgentQuery(query)
    streamIds.push(streamId)
    try {
      const response = await post(agentUrl, body, streamId, deadline, query.signal, agentConnections)
      const status = response.statusCode ?? 0
      if (status < 200 || status > 299) {
        const chunks: Buffer[] = []
        for await (const chunk of response) chunks.push(chunk as Buffer)
        return encodeAgentReply({ executed: true, error: '', status, body: Buffer.concat(chunks) })
      }
      relays++
      const relay = new AgentStream({
        system,
        streamId,
        response,
        limits,
        budget,
        account: 'test',
        signal: shutdown.signal,
      }).run()
      void relay.then((end) => {
        relays--
        relayEnds.push(end)
        if (end.cancelled) tellCancelled(streamId)
      })
      return encodeAgentReply({ executed: true, error: '', status, body: NO_BODY })
    } catch (error) {
      const failure = String(error).includes('deadline') ? 'timeout' : 'unreachable'
      return encodeAgentReply({ executed: false, error: `agent ${failure}`, failure, status: 0, body: NO_BODY })
    }
  })

  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const gone = new AbortController()
    response.once('close', () => gone.abort(new Error('the client is gone')))
    const opened = await openStream({
      system,
      requests,
      agentId: 'agent',
      body: Buffer.concat(chunks),
      request: { caller: ANONYMOUS, signal: gone.signal },
      limits,
    })
    if ('refused' in opened) {
      const { executed, error, status, failure, body } = opened.refused
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ executed, error, status, failure, body: Buffer.from(body).toString() }))
      return
    }
    active++
    streams.add(opened.stream)
    const end = await opened.stream.pipeTo(response, {
      headers: { 'x-stream-id': opened.stream.streamId },
      idleMs,
      keepAliveMs,
      endsAt: endsAt?.(),
    })
    streams.delete(opened.stream)
    active--
    ends.push(end)
  }

  const { url } = await listen((incoming, response) => {
    answer(incoming, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500)
      response.end(String(error))
    })
  }, cleanUp)
  cleanUp(async () => {
    for (const stream of streams) stream.end(STREAM_FAILURES.SHUTTING_DOWN)
    shutdown.abort()
    agentConnections.destroy()
    await engine.close()
    await rm(path, { recursive: true, force: true })
  })
  return {
    base: url,
    broker,
    system,
    budget,
    active: () => active,
    ends,
    relayEnds,
    streamIds,
    openRelays: () => relays,
    cancel: (streamId) => publishStreamCancel(system, streamId),
    closeStreams: () => {
      for (const stream of streams) stream.end(STREAM_FAILURES.SHUTTING_DOWN)
    },
    stopRelays: () => shutdown.abort(),
  }
}

function post(
  url: string,
  body: Uint8Array,
  streamId: string,
  deadlineMs: number,
  signal: AbortSignal,
  agent: Agent,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', accept: 'text/event-stream', 'x-broker-stream-id': streamId }
    const outgoing = httpRequest(url, { method: 'POST', headers, agent })
    const abort = (): void => void outgoing.destroy(new Error('the requester is gone'))
    const timer = setTimeout(() => outgoing.destroy(new Error('deadline')), deadlineMs)
    signal.addEventListener('abort', abort)
    outgoing.on('error', reject)
    outgoing.once('response', (response) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      resolve(response)
    })
    outgoing.once('close', () => clearTimeout(timer))
    outgoing.end(body)
  })
}
