import { once } from 'node:events'
import type { ServerResponse } from 'node:http'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { Answer, Asked, BareAgent } from '../support/agent.ts'
import { register, silent, startAgent } from '../support/agent.ts'
import { CONNECT } from './clients/connect.ts'
import type { OfficialClient, Outgoing } from './clients/client.ts'
import type { Gateway } from './gateway.ts'
import { gatewayUrl, startGateway } from './gateway.ts'

// What the user of an SDK sees of a stream that goes wrong, and how often the agent was asked.

/** Less than the default, which takes longer to exceed. */
const MAX_RESPONSE_BYTES = 1_000_000

let gateway: Gateway
/** Gives agents little time to begin, and to go on. */
let hasty: Gateway
beforeAll(async () => {
  ;[gateway, hasty] = await Promise.all([
    startGateway({ connectors: { a2a: { agentMaxConcurrency: 1, agentMaxResponseBytes: MAX_RESPONSE_BYTES } } }),
    startGateway({ connectors: { a2a: { defaultTimeoutSeconds: 2, maxSseIdleSeconds: 1 } } }),
  ])
})
afterAll(() => Promise.all([gateway[Symbol.asyncDispose](), hasty[Symbol.asyncDispose]()]))

const IDS = { taskId: 't', contextId: 'c' }

/** A version of the protocol: its client, and what its agents say. */
const VERSIONS = {
  '1.0': {
    task: { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' } } },
    working: { statusUpdate: { ...IDS, status: { state: 'TASK_STATE_WORKING' } } },
    completed: { statusUpdate: { ...IDS, status: { state: 'TASK_STATE_COMPLETED' } } },
    streaming: 'SendStreamingMessage',
  },
  '0.3': {
    task: { kind: 'task', id: 't', contextId: 'c', status: { state: 'submitted' } },
    working: { kind: 'status-update', ...IDS, status: { state: 'working' }, final: false },
    completed: { kind: 'status-update', ...IDS, status: { state: 'completed' }, final: true },
    streaming: 'message/stream',
  },
} as const
type Version = keyof typeof VERSIONS

const HELLO: Outgoing = { parts: [{ text: 'hello' }] }

let registered = 0

/** A client: by the version that it speaks, or `rest` for A2A 1.0 over HTTP+JSON. */
type Caller = Version | 'rest'

/** Registers an agent that speaks the version `wire`; resolves with a client of it. */
async function connect(
  caller: Caller,
  wire: Version,
  { url }: { readonly url: string },
  { http } = gateway,
): Promise<OfficialClient> {
  const id = `agent-${++registered}`
  const capabilities = { streaming: true }
  await register(http, { agent_id: id, name: id, url, capabilities, a2a: { wire } })
  return CONNECT[caller](gatewayUrl(http, id))
}

function rpc(asked: Asked, outcome: object): string {
  const { id } = JSON.parse(asked.body) as { id: unknown }
  return JSON.stringify({ jsonrpc: '2.0', id, ...outcome })
}

/** Begins a stream with these results. */
function begin(asked: Asked, response: ServerResponse, ...results: readonly object[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const result of results) response.write(`data: ${rpc(asked, { result })}\n\n`)
}

const json =
  (outcome: object): Answer =>
  (asked, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(rpc(asked, outcome))
  }

interface Seen {
  readonly events: readonly unknown[]
  /** The error's code and the reason in its details, or `end`. */
  readonly end: unknown
}

async function read(stream: AsyncIterable<{ readonly view: unknown }>): Promise<Seen> {
  const events: unknown[] = []
  try {
    for await (const { view } of stream) events.push(view)
    return { events, end: 'end' }
  } catch (error) {
    return { events, end: codeAndReason(error) }
  }
}

interface RpcError {
  readonly code: number
  readonly data?: readonly { readonly reason?: string }[]
}

/** Finds the JSON-RPC error in an SDK's error: in its member, in its cause, or in its text. */
function codeAndReason(error: unknown): unknown {
  const { errorResponse, cause, message, envelopeCode, reason } = error as Error & {
    readonly errorResponse?: { readonly error: RpcError }
    readonly envelopeCode?: number
    readonly reason?: string
  }
  if (errorResponse !== undefined) {
    const { code, data } = errorResponse.error
    return [code, data?.[0]?.reason]
  }
  if (cause !== undefined) return codeAndReason(cause)
  const [, inText, data] = /\(Code: (-\d+)\) Data: (.*)$/s.exec(message) ?? []
  if (inText === undefined || data === undefined) return [envelopeCode ?? message, reason]
  return [Number(inText), (JSON.parse(data) as RpcError['data'])?.[0]?.reason]
}

function asked(agent: BareAgent): readonly string[] {
  return agent.asked.map(({ method }) => method)
}

const CODES = {
  busy: [-32603, 'AGENT_BUSY'],
  gone: [-32603, 'AGENT_UNREACHABLE'],
  timeout: [-32603, 'AGENT_TIMEOUT'],
  invalid: [-32006, 'INVALID_AGENT_RESPONSE'],
  interrupted: [-32603, 'STREAM_INTERRUPTED'],
  idle: [-32603, 'STREAM_IDLE'],
  large: [-32603, 'RESPONSE_TOO_LARGE'],
} as const

const SOME_TEXT: unknown = expect.any(String)

/** Returns the end of a stream as the client shows it: errors over HTTP+JSON have no code, and their own reasons are hidden. */
function shown(caller: Caller, end: readonly [number, string | undefined]): readonly unknown[] {
  const [code, reason] = end
  return caller === 'rest' ? [SOME_TEXT, code === -32603 ? 'INTERNAL_ERROR' : reason] : end
}

const PAIRS = [
  ['1.0', '1.0'],
  ['rest', '1.0'],
  ['rest', '0.3'],
  ['0.3', '0.3'],
  ['1.0', '0.3'],
  ['0.3', '1.0'],
] as const satisfies readonly (readonly [Caller, Version])[]

describe.each(PAIRS)('client of %s and agent of %s', (caller, wire) => {
  const { task, working, completed, streaming } = VERSIONS[wire]
  const version = caller === 'rest' ? '1.0' : caller
  const sees = VERSIONS[version]

  test('wrong streams - a busy agent is not asked, and the caller may repeat', async () => {
    const agent = await startAgent((call, response) => begin(call, response, task, working))
    const client = await connect(caller, wire, agent)
    const leaving = new AbortController()
    const first = client.stream(HELLO, leaving.signal)[Symbol.asyncIterator]()
    await first.next()
    expect(await read(client.stream(HELLO))).toEqual({ events: [], end: shown(caller, CODES.busy) })
    expect(asked(agent)).toEqual([streaming])
    leaving.abort()
  })

  test('wrong streams - an unreachable agent', async () => {
    const client = await connect(caller, wire, { url: 'http://127.0.0.1:1/' })
    expect(await read(client.stream(HELLO))).toEqual({ events: [], end: shown(caller, CODES.gone) })
  })

  test('wrong streams - an agent that sends nothing before the time-out is called once', async () => {
    const agent = await startAgent(silent)
    const client = await connect(caller, wire, agent, hasty)
    expect(await read(client.stream(HELLO))).toEqual({ events: [], end: shown(caller, CODES.timeout) })
    expect(asked(agent)).toEqual([streaming])
  })

  test('wrong streams - an agent that refuses with JSON', async () => {
    const agent = await startAgent(json({ error: { code: -32001, message: 'no such task' } }))
    const client = await connect(caller, wire, agent)
    const { events, end } = await read(client.stream(HELLO))
    expect(events).toEqual([])
    expect(end).toEqual(shown(caller, [-32001, version === '1.0' ? 'TASK_NOT_FOUND' : undefined]))
    expect(asked(agent)).toEqual([streaming])
  })

  test('wrong streams - an agent that answers at once with JSON: a stream of one event', async () => {
    const agent = await startAgent(json({ result: task }))
    const client = await connect(caller, wire, agent)
    expect(await read(client.stream(HELLO))).toEqual({ events: [sees.task], end: 'end' })
  })

  test('wrong streams - an agent that answers with a page', async () => {
    const agent = await startAgent((_, response) => void response.writeHead(404).end('<h1>no</h1>'))
    const client = await connect(caller, wire, agent)
    expect(await read(client.stream(HELLO))).toEqual({ events: [], end: shown(caller, CODES.invalid) })
    expect(asked(agent)).toEqual([streaming])
  })

  test('wrong streams - an agent that disconnects in the middle of a stream', async () => {
    const agent = await startAgent((call, response) => {
      begin(call, response, task, working)
      response.write('data: {"jsonrpc"', () => response.destroy())
    })
    const client = await connect(caller, wire, agent)
    expect(await read(client.stream(HELLO))).toEqual({
      events: [sees.task, sees.working],
      end: shown(caller, CODES.interrupted),
    })
  })

  test('wrong streams - an agent that falls silent in the middle', async () => {
    const agent = await startAgent((call, response) => begin(call, response, task, working))
    const client = await connect(caller, wire, agent, hasty)
    expect(await read(client.stream(HELLO))).toEqual({
      events: [sees.task, sees.working],
      end: shown(caller, CODES.idle),
    })
    await expect.poll(() => agent.gone.length).toBe(1)
  })

  test('wrong streams - an error of the agent in the middle', async () => {
    const agent = await startAgent((call, response) => {
      begin(call, response, task)
      response.end(`data: ${rpc(call, { error: { code: -32603, message: 'out of coal' } })}\n\n`)
    })
    const client = await connect(caller, wire, agent)
    expect(await read(client.stream(HELLO))).toEqual({ events: [sees.task], end: shown(caller, [-32603, undefined]) })
  })

  test('wrong streams - an event over CONNECTORSA2_A_AGENT_MAX_RESPONSE_BYTES', async () => {
    const agent = await startAgent((call, response) => {
      begin(call, response, task, { ...working, metadata: { text: 'x'.repeat(MAX_RESPONSE_BYTES) } })
      response.end()
    })
    const client = await connect(caller, wire, agent)
    expect(await read(client.stream(HELLO))).toEqual({ events: [sees.task], end: shown(caller, CODES.large) })
  })

  test('wrong streams - a result over CONNECTORSA2_A_AGENT_MAX_RESPONSE_BYTES', async () => {
    const agent = await startAgent(json({ result: { ...task, metadata: { text: 'x'.repeat(MAX_RESPONSE_BYTES) } } }))
    const client = await connect(caller, wire, agent)
    await expect(client.send(HELLO).catch(codeAndReason)).resolves.toEqual(shown(caller, CODES.large))
    expect(asked(agent)).toHaveLength(1)
  })

  test('wrong streams - a stream that its agent ends without a last state just ends', async () => {
    const agent = await startAgent((call, response) => {
      begin(call, response, task, working)
      response.end()
    })
    const client = await connect(caller, wire, agent)
    expect(await read(client.stream(HELLO))).toEqual({ events: [sees.task, sees.working], end: 'end' })
  })

  test('wrong streams - a client that leaves closes the connection to the agent, and cancels nothing', async () => {
    const agent = await startAgent((call, response) => {
      if (call.method !== streaming) return json({ result: task })(call, response)
      return begin(call, response, task, working)
    })
    const client = await connect(caller, wire, agent)
    const leaving = new AbortController()
    const stream = client.stream(HELLO, leaving.signal)[Symbol.asyncIterator]()
    await stream.next()
    leaving.abort()
    await expect.poll(() => agent.gone.length).toBe(1)
    // A notification would have been sent before the agent is asked for something else, which the stream that ends may delay.
    const next = async (): Promise<readonly string[]> => {
      if (agent.asked.length < 2) await client.get('t').catch(() => {})
      return asked(agent)
    }
    await expect.poll(next).toEqual([streaming, wire === '1.0' ? 'GetTask' : 'tasks/get'])
  })

  test('wrong streams - events after the final state are read to the end', async () => {
    const agent = await startAgent(async (call, response) => {
      begin(call, response, task, completed)
      response.end(`: bye\n\ndata: ${rpc(call, { result: completed })}\n\n`)
      await once(response, 'close')
    })
    const client = await connect(caller, wire, agent)
    const { end } = await read(client.stream(HELLO))
    expect(end).toBe('end')
  })
})
