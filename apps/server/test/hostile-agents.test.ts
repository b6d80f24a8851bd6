import type { ServerResponse } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'

import { testServer } from '@signalbox/testkit/test-server'
import { expect, test } from 'vitest'

import { callAgent, postJson, register, startAgent, withResult } from './support/agent.ts'
import { callTool } from './support/mcp.ts'
import { serve } from './support/server.ts'

/** A way to misbehave, and the error that callers get. */
interface Hostility {
  readonly name: string
  readonly answer: (response: ServerResponse) => unknown
  /** The text of `agent_send` and of `agent_query`. */
  readonly tool: RegExp
  /** The JSON-RPC error of a plain call; undefined where there is a result. */
  readonly call: object | undefined
  /** The JSON-RPC error of a stream, or the payload of its last event. */
  readonly stream: unknown
}

const MAX_RESPONSE_BYTES = 262_144
const SSE = { 'Content-Type': 'text/event-stream' }
const JSON_TYPE = { 'Content-Type': 'application/json' }

const INVALID = { code: -32004, message: 'invalid response from agent' }
const TOO_LARGE = { code: -32603, message: 'agent response too large' }
const TIMEOUT = { code: -32001, message: 'agent timeout' }
const IDLE = { code: -32001, message: 'stream idle timeout' }
const NO_TERMINAL = { code: -32004, message: 'stream ended without a terminal event' }
const TOOL_INVALID = /^INVALID_RESPONSE: invalid response from agent "hostile"/
const TOOL_TOO_LARGE = /^AGENT_UNAVAILABLE: agent response too large/
const TOOL_TIMEOUT = /^AGENT_TIMEOUT: /

const DEEP = `{"jsonrpc":"2.0","id":1,"result":${'['.repeat(5_000)}${']'.repeat(5_000)}}`
const BOMB = gzipSync(Buffer.alloc(100 * 1024 * 1024), { level: 1 })

/** Writes the same again until the other side has had enough. */
function flood(response: ServerResponse, head: object, first: string, chunk: string): void {
  response.writeHead(200, { ...head })
  response.write(first)
  const write = (): void => {
    while (!response.destroyed && response.write(chunk));
  }
  response.on('drain', write)
  write()
}

function repeatedly(response: ServerResponse, act: () => void): void {
  const timer = setInterval(act, 20)
  response.once('close', () => clearInterval(timer))
}

function raw(response: ServerResponse, text: string): void {
  response.socket?.end(text, 'latin1')
}

const HOSTILITIES: readonly Hostility[] = [
  {
    name: 'JSON nested 5,000 levels deep',
    answer: (response) => response.writeHead(200, JSON_TYPE).end(DEEP),
    tool: /^INVALID_RESPONSE: invalid response from agent "hostile": the body is nested deeper than 128 levels\.$/,
    call: INVALID,
    stream: INVALID,
  },
  {
    name: 'an event nested 5,000 levels deep',
    answer: (response) => response.writeHead(200, SSE).end(`data: ${DEEP}\n\n`),
    tool: TOOL_INVALID,
    call: INVALID,
    stream: INVALID,
  },
  {
    name: 'a reply that never stops growing',
    answer: (response) => flood(response, JSON_TYPE, '"', 'x'.repeat(65_536)),
    tool: TOOL_TOO_LARGE,
    call: TOO_LARGE,
    stream: TOO_LARGE,
  },
  {
    name: 'a reply that says it has 100 MB',
    answer: (response) => response.writeHead(200, { ...JSON_TYPE, 'Content-Length': 100_000_000 }).write('"'),
    tool: TOOL_TOO_LARGE,
    call: TOO_LARGE,
    stream: IDLE,
  },
  {
    name: 'an event that never stops growing',
    answer: (response) => flood(response, SSE, 'data: "', 'x'.repeat(65_536)),
    tool: TOOL_INVALID,
    call: INVALID,
    stream: TOO_LARGE,
  },
  { name: 'no answer at all', answer: () => {}, tool: TOOL_TIMEOUT, call: TIMEOUT, stream: TIMEOUT },
  {
    name: 'a body of one byte at a time',
    answer: (response) => {
      response.writeHead(200, JSON_TYPE)
      repeatedly(response, () => response.write(' '))
    },
    tool: TOOL_TIMEOUT,
    call: TIMEOUT,
    stream: IDLE,
  },
  {
    name: 'informational responses without an end',
    answer: (response) => repeatedly(response, () => response.writeProcessing()),
    tool: TOOL_TIMEOUT,
    call: TIMEOUT,
    stream: TIMEOUT,
  },
  {
    name: 'a page of HTML',
    answer: (response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>{"result":1}'),
    tool: TOOL_INVALID,
    call: INVALID,
    stream: INVALID,
  },
  {
    name: 'bytes that are not UTF-8',
    answer: (response) =>
      response.writeHead(200, JSON_TYPE).end(Buffer.from('{"jsonrpc":"2.0","id":1,"result":"\xff"}', 'latin1')),
    tool: /the body is not valid UTF-8/,
    call: INVALID,
    stream: INVALID,
  },
  {
    name: 'keys that come twice, of which the last counts as for JSON.parse',
    answer: (response) => response.writeHead(200, JSON_TYPE).end('{"jsonrpc":"2.0","id":1,"result":1,"result":2}'),
    tool: /^2$/,
    call: undefined,
    stream: 2,
  },
  {
    name: 'a head of 1 MB',
    answer: (response) => raw(response, `HTTP/1.1 200 OK\r\nX-Large: ${'x'.repeat(1_000_000)}\r\n\r\n`),
    tool: TOOL_INVALID,
    call: INVALID,
    stream: INVALID,
  },
  {
    name: 'no HTTP',
    answer: (response) => raw(response, '\x16\x03\x01\xff'.repeat(100)),
    tool: TOOL_INVALID,
    call: INVALID,
    stream: INVALID,
  },
  {
    name: 'half a body',
    answer: (response) => raw(response, 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"jsonrpc"'),
    tool: TOOL_INVALID,
    call: INVALID,
    stream: NO_TERMINAL,
  },
  {
    name: 'a closed connection',
    answer: (response) => response.socket?.resetAndDestroy(),
    tool: /^AGENT_UNAVAILABLE: .*the connection was closed before a response came/,
    call: { code: -32003, message: 'agent unreachable: the connection was closed before a response came' },
    stream: { code: -32003, message: 'agent unreachable: the connection was closed before a response came' },
  },
  {
    name: 'an event stream of garbage',
    answer: (response) => response.writeHead(200, SSE).end('data\n\0\xff\n\nid: \0\nevent: x\nretry: -1\n: \n\n\n'),
    tool: TOOL_INVALID,
    call: INVALID,
    stream: NO_TERMINAL,
  },
  {
    name: 'a redirect to the server itself',
    answer: (response) => response.writeHead(307, { Location: '/' }).end(),
    tool: /^AGENT_REJECTED: .*HTTP 307/,
    call: { code: -32004, message: 'invalid response from agent: HTTP 307' },
    stream: { code: -32004, message: 'invalid response from agent: HTTP 307' },
  },
  {
    name: 'a bomb of gzip',
    answer: (response) => response.writeHead(200, { ...JSON_TYPE, 'Content-Encoding': 'gzip' }).end(BOMB),
    tool: /^INVALID_RESPONSE: .*compressed/,
    call: INVALID,
    stream: INVALID,
  },
]

/** An agent that misbehaves as its path says; `open` are the responses whose connection it still has. */
async function startHostileAgent(): Promise<{ readonly url: string; readonly open: ReadonlySet<ServerResponse> }> {
  const open = new Set<ServerResponse>()
  const server = await testServer((request, response) => {
    open.add(response)
    response.once('close', () => open.delete(response))
    readText(request).then(
      (body) => {
        // The gateway cancels the stream at the agent; nobody waits for the answer.
        if (body.includes('stream_cancel')) response.end()
        else HOSTILITIES[Number(request.url?.slice(1))]?.answer(response)
      },
      () => response.destroy(),
    )
  })
  return { url: server.url, open }
}

/** The time of a call that must end by it, in seconds, and of one that must end before it, however busy the machine is. */
const [HASTY, PATIENT] = [1, 40]

/** What a stream came to: its JSON-RPC error, or the payload of its last event. */
async function streamed(base: string, agentId: string, timeout: number): Promise<unknown> {
  const params = { configuration: { timeout } }
  const response = await postJson(`${base}/a2a/${agentId}`, { jsonrpc: '2.0', id: 1, method: 'message/stream', params })
  const text = await response.text()
  if (response.headers.get('content-type') !== 'text/event-stream') {
    return (JSON.parse(text) as { error: unknown }).error
  }
  const [, data = ''] = [...text.matchAll(/^data: (.*)$/gm)].at(-1) ?? []
  return (JSON.parse(data) as { payload: unknown }).payload
}

function wellAnswered(base: string): Promise<unknown> {
  return callAgent(base, 'well', 'message/send')
}

test('agents - for any fault of an agent, each of its callers gets a clear error and no other caller is affected', async () => {
  const [hasty, patient] = await Promise.all(
    [HASTY, PATIENT].map((maxSseIdleSeconds) =>
      serve({ connectors: { a2a: { agentMaxResponseBytes: MAX_RESPONSE_BYTES, maxSseIdleSeconds } } }),
    ),
  )
  const servers = [hasty!, patient!]
  const agent = await startHostileAgent()
  const well = await startAgent(withResult('well'))
  for (const { http } of servers) await register(http.url, { agent_id: 'well', name: 'Well', url: well.url })

  const seen = await Promise.all(
    HOSTILITIES.map(async ({ name, tool, call, stream: expected }, index) => {
      const agent_id = `hostile-${index}`
      const base = (expected === IDLE ? hasty! : patient!).http.url
      const forTool = tool === TOOL_TIMEOUT ? HASTY : PATIENT
      const configuration = { timeout: call === TIMEOUT ? HASTY : PATIENT }
      await register(base, { agent_id, name, url: `${agent.url}/${index}` })
      const [sent, queried, called, stream, beside] = await Promise.all([
        callTool(base, 'agent_send', { agent_id, message: 'Hello', timeout_seconds: forTool }),
        callTool(base, 'agent_query', { agent_id, method: 'm', params: { configuration } }),
        callAgent(base, agent_id, 'message/send', { configuration }),
        streamed(base, agent_id, expected === TIMEOUT ? HASTY : PATIENT),
        wellAnswered(base),
      ])
      const plain = ({ text }: { text: string }): string => text.replaceAll(agent_id, 'hostile')
      return { name, sent: plain(sent), queried: plain(queried), called, stream, beside }
    }),
  )

  const beside = { jsonrpc: '2.0', id: 1, result: 'well' }
  expect(seen).toEqual(
    HOSTILITIES.map(({ name, tool, call, stream }) => ({
      name,
      sent: expect.stringMatching(tool),
      queried: expect.stringMatching(tool),
      called: call === undefined ? { jsonrpc: '2.0', id: 1, result: 2 } : { jsonrpc: '2.0', id: 1, error: call },
      stream,
      beside,
    })),
  )
  for (const { http, api } of servers) {
    expect(await wellAnswered(http.url)).toEqual(beside)
    expect((await fetch(`${api.url}/health`)).status).toBe(200)
  }
  await expect.poll(() => agent.open.size, { interval: 10 }).toBe(0)
})
