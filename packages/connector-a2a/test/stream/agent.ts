import type { IncomingMessage, Server, ServerResponse } from 'node:http'

import type { CleanUp } from './host.ts'
import { listen } from './host.ts'

export type AgentBehavior = (response: ServerResponse, request: IncomingMessage) => void | Promise<void>

/** A real HTTP agent whose streams do what the test says. */
export interface TestAgent {
  readonly url: string
  readonly server: Server
  /** Streams that the agent has open now. */
  readonly open: () => number
  /** Ids of the streams that it was told are cancelled. */
  readonly cancelled: readonly string[]
  /** Stream ids that it learned with its requests. */
  readonly streamIds: readonly string[]
}

export async function startAgent(behavior: AgentBehavior, cleanUp?: CleanUp): Promise<TestAgent> {
  const cancelled: string[] = []
  const streamIds: string[] = []
  let open = 0
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += String(chunk)
    const { method, params } = JSON.parse(body) as { method: string; params: { stream_id: string } }
    if (method === 'stream_cancel') {
      cancelled.push(params.stream_id)
      response.writeHead(204).end()
      return
    }
    streamIds.push(String(request.headers['x-broker-stream-id']))
    open++
    response.once('close', () => open--)
    response.on('error', () => {})
    await behavior(response, request)
  }
  const { server, url } = await listen((request, response) => void handle(request, response).catch(() => {}), cleanUp)
  return { url, server, open: () => open, cancelled, streamIds }
}

/** An agent that answers each request for a stream with this text, and ends. */
export function answering(text: string | Uint8Array, contentType = 'text/event-stream'): AgentBehavior {
  return (response) => void response.writeHead(200, { 'content-type': contentType }).end(text)
}

/** Begins an event stream. */
export function beginStream(response: ServerResponse): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  return response
}

/** One event in the dialect that is named as the client's events are. */
export function taskEvent(type: 'status' | 'artifact' | 'done' | 'error', payload: unknown): string {
  const types = { status: 'status_update', artifact: 'artifact', done: 'done', error: 'error' } as const
  return `event: task.${type}\ndata: ${JSON.stringify({ type: types[type], payload })}\n\n`
}

/** One JSON-RPC response with this result. */
export function resultEvent(result: unknown): string {
  return `data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`
}

/** Writes as a well-behaved producer does: not faster than it is read. False when the reader is gone. */
export async function write(response: ServerResponse, text: string): Promise<boolean> {
  if (response.destroyed) return false
  if (response.write(text)) return true
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done)
      response.off('close', done)
      resolve(!response.destroyed)
    }
    response.on('drain', done)
    response.on('close', done)
  })
}
