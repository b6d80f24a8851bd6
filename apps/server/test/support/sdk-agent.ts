import { once } from 'node:events'
import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

import type { AgentCard } from '@a2a-js/sdk'
import { AgentCard as AgentCardCodec, TaskState } from '@a2a-js/sdk'
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server'
import type { AgentExecutor } from '@a2a-js/sdk/server'
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
} from '@a2a-js/sdk/server'
import { onTestFinished } from 'vitest'

function status(state: TaskState) {
  return { state, message: undefined, timestamp: new Date().toISOString() }
}

/** Turns what it is told into capitals: a task that works, has one artifact and is completed. */
const shouting: AgentExecutor = {
  execute: async ({ userMessage, taskId, contextId }, bus) => {
    const said = userMessage.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join(' ')
    const rest = { metadata: undefined }
    bus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: status(TaskState.TASK_STATE_WORKING),
        artifacts: [],
        history: [userMessage],
        ...rest,
      }),
    )
    const content = { $case: 'text' as const, value: said.toUpperCase() }
    const parts = [{ content, filename: '', mediaType: 'text/plain', ...rest }]
    const artifact = { artifactId: 'shout', name: 'shout', description: '', parts, extensions: [], ...rest }
    bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: true, ...rest }))
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(TaskState.TASK_STATE_COMPLETED), ...rest }))
    bus.finished()
  },
  cancelTask: async () => {},
}

/** A request as the agent's own access log has it. */
export interface Logged {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
}

export interface SdkAgentOptions {
  /** Answers a request in place of the agent, and returns true; false lets it pass. */
  readonly guard?: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Members of the card. */
  readonly card?: Partial<AgentCard>
}

export interface SdkAgent {
  readonly url: string
  readonly cardUrl: string
  /** The agent's own access log. */
  readonly log: readonly Logged[]
  /** The calls in it. */
  calls(): readonly Logged[]
  /** Changes members of the card that it serves. */
  change(card: Partial<AgentCard>): void
  /** Ends the agent, with its connections. */
  stop(): void
}

/** An agent on the official SDK, with its layer for A2A 0.3; it ends with the test. Resolves with its URL. */
export async function startSdkAgent(): Promise<string> {
  return (await openSdkAgent()).url
}

/** As {@link startSdkAgent}; also serves its card, with an ETag. */
export async function openSdkAgent({ guard, card: members = {} }: SdkAgentOptions = {}): Promise<SdkAgent> {
  const server = createServer()
  const log: Logged[] = []
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const binding = { url, protocolBinding: 'JSONRPC', tenant: '' }
  const card: AgentCard = {
    name: 'Shouting',
    description: '',
    supportedInterfaces: [
      { ...binding, protocolVersion: '1.0' },
      { ...binding, protocolVersion: '0.3' },
    ],
    provider: undefined,
    version: '1.0.0',
    capabilities: { streaming: true, extensions: [] },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
    signatures: [],
    ...members,
  }
  const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), shouting)
  const transports = {
    '0.3': new LegacyJsonRpcTransportHandler(handler),
    '1.0': new JsonRpcTransportHandler(handler),
  }
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url: path = '', headers } = request
    log.push({ method, path, headers })
    if (guard?.(request, response) === true) return
    if (method === 'GET') {
      const body = JSON.stringify(AgentCardCodec.toJSON(card))
      const etag = `"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"`
      const same = headers['if-none-match'] === etag
      response.writeHead(same ? 304 : 200, { 'content-type': 'application/json', etag }).end(same ? '' : body)
      return
    }
    const requestedVersion = request.headers['a2a-version'] === '1.0' ? '1.0' : '0.3'
    const context = new ServerCallContext({ requestedVersion })
    const answer = await transports[requestedVersion].handle(await text(request), context)
    if (!(Symbol.asyncIterator in answer)) {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(answer))
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for await (const event of answer) response.write(`data: ${JSON.stringify(event)}\n\n`)
    response.end()
  }
  server.on('request', (request, response) => void serve(request, response))
  const stop = (): void => {
    server.closeAllConnections()
    server.close()
  }
  onTestFinished(stop)
  return {
    url,
    cardUrl: `${url}.well-known/agent-card.json`,
    log,
    calls: () => log.filter(({ method }) => method === 'POST'),
    change: (changed) => Object.assign(card, changed),
    stop,
  }
}
