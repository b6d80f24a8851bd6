import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { AgentDirectory } from '@signalbox/broker-core/ports'
import { agentOutcome } from '../src/tools/agent-call.ts'
import type { AgentAnswer, AgentRequest } from './agent-directory.ts'
import { TestAgentDirectory, GATEWAY_TIMEOUT_BUFFER_MS } from './agent-directory.ts'
import type { ToolBench } from './tool-bench.ts'
import { openToolBench, problemsOf } from './tool-bench.ts'

let bench: ToolBench
let directory: TestAgentDirectory
let answer: (request: AgentRequest) => AgentAnswer | Promise<AgentAnswer>
const asked: AgentRequest[] = []

const CARD = {
  agent_id: 'weather',
  name: 'Weather',
  description: 'Knows the weather',
  version: '1.2.0',
  url: 'http://127.0.0.1:1/weather',
  skills: [
    { id: 'forecast', name: 'Forecast', description: 'Days ahead', tags: ['weather', 'future'] },
    { id: 'now', name: 'Now' },
  ],
  'x-own': { deep: [1, null, 'two'] },
}

beforeAll(async () => {
  bench = await openToolBench(async (system) => {
    directory = new TestAgentDirectory(system)
    await directory.register(CARD, (request) => {
      asked.push(request)
      return answer(request)
    })
    await directory.register({
      agent_id: 'maths',
      name: 'Maths',
      skills: [{ id: 'sum', name: 'Sum', tags: ['numbers'] }],
    })
    await directory.register({ agent_id: 'bare', name: 'Bare' })
    return directory
  })
})

afterAll(() => bench[Symbol.asyncDispose]())

/** Calls a tool while the agent gives this answer. */
async function withAnswer(given: AgentAnswer | typeof answer, tool: string, args: object, signal?: AbortSignal) {
  answer = typeof given === 'function' ? given : () => given
  return bench.call(tool, args, signal)
}

const lastEnvelope = () => JSON.parse(asked.at(-1)!.envelope) as Record<string, unknown>
const UUID = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
const SEND = { agent_id: 'weather', message: 'Rain?' }
const QUERY = { agent_id: 'weather', method: 'tasks/get', params: { id: 't1' } }

async function ids(skill_tags: string[]): Promise<readonly string[]> {
  return ((await bench.json('agent_list', { skill_tags })) as { agent_id: string }[]).map(({ agent_id }) => agent_id)
}

function unreachable(): Promise<never> {
  return Promise.reject(new Error('agent unreachable: connection refused'))
}

describe('tools - agent_list', () => {
  test('TOOL-24, SHAPE-5 - summaries of all agents, with nothing of the card beyond', async () => {
    const { text, structuredContent } = await bench.call('agent_list', {})
    const agents: unknown = JSON.parse(text)
    expect(agents).toEqual([
      { agent_id: 'bare', name: 'Bare', skills: [] },
      { agent_id: 'maths', name: 'Maths', skills: [{ id: 'sum', name: 'Sum', tags: ['numbers'] }] },
      {
        agent_id: 'weather',
        name: 'Weather',
        skills: [
          { id: 'forecast', name: 'Forecast', tags: ['weather', 'future'] },
          { id: 'now', name: 'Now', tags: [] },
        ],
      },
    ])
    expect(structuredContent).toEqual({ agents })
  })

  test('TOOL-24 - skill_tags keeps agents that have any of them; none is a success', async () => {
    expect(await ids(['future', 'other'])).toEqual(['weather'])
    expect(await ids(['future', 'numbers'])).toEqual(['maths', 'weather'])
    expect(await ids(['other'])).toEqual([])
    expect(await ids([])).toEqual(['bare', 'maths', 'weather'])
  })
})

describe('tools - agent_list in pages', () => {
  test('M10 - limit and cursor page through the list while the directory changes', async () => {
    const first = await bench.call('agent_list', { limit: 2 })
    expect(first.structuredContent).toEqual({
      agents: JSON.parse(first.text),
      more: true,
      left_out: 1,
      cursor: 'maths',
      next_cursor: 'maths',
    })
    expect((JSON.parse(first.text) as { agent_id: string }[]).map(({ agent_id }) => agent_id)).toEqual([
      'bare',
      'maths',
    ])
    const second = await bench.call('agent_list', { limit: 1, cursor: 'maths' })
    expect(second.structuredContent).toEqual({ agents: [expect.objectContaining({ agent_id: 'weather' })] })
    expect(await bench.json('agent_list', { cursor: 'mb' })).toHaveLength(1)
    expect(await bench.json('agent_list', { cursor: 'weather', skill_tags: ['future'] })).toEqual([])
    const [problem] = problemsOf(await bench.refused('agent_list', { skill_tags: Array(1001).fill('t') }))
    expect(problem).toMatchObject({ argument: 'skill_tags', allowed: 'an array of at most 1000 strings' })
  })

  test('M10 - an answer is cut at 4 MiB, and counts at most 10,000 of the other agents', async () => {
    const tags = ['"'.repeat(1_000)]
    let looked = 0
    let most = 0
    const directory: AgentDirectory = {
      get: (agentId) => directory.get(agentId),
      request: (...request) => directory.request(...request),
      list: async ({ limit, after }) => {
        const from = after === undefined ? 0 : Number(after.slice(1)) + 1
        most = Math.max(most, limit)
        return Array.from({ length: Math.min(limit, 100_000 - from) }, (_, i) => {
          looked++
          return {
            agent_id: `a${String(from + i).padStart(6, '0')}`,
            name: 'N',
            skills: [{ id: 's', name: 'S', tags }],
          }
        })
      },
    }
    await using many = await openToolBench(async () => directory)
    const { text, structuredContent } = await many.call('agent_list', { limit: 100_000 })
    const listed = JSON.parse(text) as { agent_id: string }[]
    const answer = JSON.stringify({ content: [{ type: 'text', text }], structuredContent })
    expect(answer.length).toBeLessThan(4.1 * 1024 * 1024)
    expect(answer.length).toBeGreaterThan(3.9 * 1024 * 1024)
    expect(structuredContent).toHaveProperty('next_cursor', listed.at(-1)?.agent_id)
    expect(looked - listed.length).toBeLessThan(10_000 + 2 * most)
    const next = await many.call('agent_list', { cursor: listed.at(-1)?.agent_id, limit: 1 })
    expect(JSON.parse(next.text)).toEqual([expect.objectContaining({ agent_id: `a000${listed.length}` })])
  })
})

describe('tools - agent_info', () => {
  test('TOOL-25 - the card is the registered one, with its additional fields', async () => {
    const { text, structuredContent } = await bench.call('agent_info', { agent_id: 'weather' })
    expect(JSON.parse(text)).toEqual(CARD)
    expect(structuredContent).toEqual(CARD)
  })
})

describe('tools - agent_send', () => {
  test('M15, TOOL-26 - sends exactly the documented envelope', async () => {
    await withAnswer({ body: '{"jsonrpc":"2.0","id":1,"result":{}}' }, 'agent_send', SEND)
    expect(lastEnvelope()).toEqual({
      jsonrpc: '2.0',
      id: UUID,
      method: 'message/send',
      params: {
        message: { kind: 'message', role: 'user', messageId: UUID, parts: [{ kind: 'text', text: 'Rain?' }] },
        configuration: { blocking: true },
      },
    })
    expect(asked.at(-1)!.callerId).toBe('anonymous')
    expect(asked.at(-1)!.timeoutMs).toBeNaN()
  })

  test('M15 - context_id and timeout_seconds go with it', async () => {
    const args = { ...SEND, context_id: 'talk-7', timeout_seconds: 20 }
    await withAnswer({ body: '{"jsonrpc":"2.0","id":1,"result":{}}' }, 'agent_send', args)
    expect(lastEnvelope()['params']).toEqual({
      message: {
        kind: 'message',
        role: 'user',
        messageId: UUID,
        parts: [{ kind: 'text', text: 'Rain?' }],
        contextId: 'talk-7',
      },
      contextId: 'talk-7',
      configuration: { blocking: true, timeout: 20 },
    })
    expect(asked.at(-1)!.timeoutMs).toBe(20_000)
    expect(directory.queryTimeouts.at(-1)).toBe(20_000 + GATEWAY_TIMEOUT_BUFFER_MS)
  })

  test('M13 - a larger timeout than the gateway allows is capped, not refused', async () => {
    for (const timeout_seconds of [100_000, Number.MAX_SAFE_INTEGER]) {
      const args = { ...SEND, timeout_seconds }
      const { isError } = await withAnswer({ body: '{"jsonrpc":"2.0","id":1,"result":{}}' }, 'agent_send', args)
      expect(isError).toBe(false)
      expect(directory.queryTimeouts.at(-1)).toBe(3_600_000 + GATEWAY_TIMEOUT_BUFFER_MS)
    }
  })

  test('TOOL-26, M10 - the text is the result, as the agent wrote it', async () => {
    const result = '{ "z": 9007199254740993, "a": [1.0, "\\u00e9"], "z": 2 }'
    const { text, structuredContent } = await withAnswer(
      { body: `{"result": ${result} , "id": 1, "jsonrpc":"2.0"}` },
      'agent_send',
      SEND,
    )
    expect(text).toBe(result)
    expect(structuredContent).toEqual({ reply: { z: 2, a: [1, 'é'] } })
  })

  test('TOOL-26 - JSON that is no JSON-RPC response is the reply itself', async () => {
    for (const body of [
      '{"answer": 42}',
      '[1]',
      '"text"',
      'null',
      ' {"result": 1} ',
      '{"error": {"code": 1}}',
      '{"jsonrpc": "1.0", "result": 1}',
    ]) {
      const { text, isError, structuredContent } = await withAnswer({ body, status: 201 }, 'agent_send', SEND)
      expect({ text, isError }).toEqual({ text: body.trim(), isError: false })
      expect(structuredContent).toEqual({ reply: JSON.parse(body) })
    }
  })

  test('TOOL-26 - a null result is a reply', async () => {
    const { text, isError } = await withAnswer({ body: '{"jsonrpc":"2.0","id":1,"result":null}' }, 'agent_send', SEND)
    expect({ text, isError }).toEqual({ text: 'null', isError: false })
  })

  test('M12 - without blocking it returns when the request is accepted, and states this', async () => {
    const done = Promise.withResolvers<AgentAnswer>()
    const args = { ...SEND, blocking: false }
    const { text, isError, structuredContent } = await withAnswer(() => done.promise, 'agent_send', args)
    expect(isError).toBe(false)
    expect(text).toContain('accepted')
    expect(text).toContain('"weather"')
    expect(structuredContent).toEqual({ agent_id: 'weather', accepted: true })
    expect(lastEnvelope()).toMatchObject({ params: { configuration: { blocking: false } } })
    done.resolve({ body: '{}' })
  })

  test('M6 - reports the reason of its wait', async () => {
    await withAnswer({ body: '{}' }, 'agent_send', SEND)
    expect(bench.progress.at(-1)).toBe('waiting for the reply of agent "weather"')
  })
})

describe('tools - agent_query', () => {
  test('TOOL-27 - forwards the method and its parameters as they are', async () => {
    const params = { id: 't1', deep: { __proto__x: [null, true, 'é'] } }
    const args = { agent_id: 'weather', method: 'weather/custom', params }
    const { text, structuredContent } = await withAnswer(
      { body: '{"jsonrpc":"2.0","id":1,"result":[1]}' },
      'agent_query',
      args,
    )
    expect(text).toBe('[1]')
    expect(structuredContent).toEqual({ reply: [1] })
    expect(lastEnvelope()).toEqual({ jsonrpc: '2.0', id: UUID, method: 'weather/custom', params })
  })

  test('TOOL-27 - without params the envelope has none, and __proto__ in them is data', async () => {
    await withAnswer({ body: '{}' }, 'agent_query', { agent_id: 'weather', method: 'ping' })
    expect(lastEnvelope()).not.toHaveProperty('params')
    const params: unknown = JSON.parse('{"__proto__": {"admin": true}}')
    await withAnswer({ body: '{}' }, 'agent_query', { agent_id: 'weather', method: 'ping', params })
    expect(asked.at(-1)!.envelope).toContain('"params":{"__proto__":{"admin":true}}')
  })

  test('M13 - params.configuration.timeout is the deadline, and still reaches the agent', async () => {
    const params = { configuration: { timeout: 2.5 } }
    await withAnswer({ body: '{}' }, 'agent_query', { ...QUERY, params })
    expect(asked.at(-1)!.timeoutMs).toBe(2500)
    expect(directory.queryTimeouts.at(-1)).toBe(2500 + GATEWAY_TIMEOUT_BUFFER_MS)
    expect(lastEnvelope()['params']).toEqual(params)
  })
})

describe.each([
  { tool: 'agent_send', args: SEND },
  { tool: 'agent_query', args: QUERY },
])('tools - $tool fails as a tool error', ({ tool, args }) => {
  test('M13 - an error of the agent is its code, message and data, as it wrote them', async () => {
    const error = '{"data": {"big": 9007199254740993}, "code": -32001, "message": "no \\u2603", "more": 1}'
    for (const status of [200, 404, 500]) {
      const body = `{"jsonrpc":"2.0","id":null,"error":${error}}`
      const { text, isError } = await withAnswer({ body, status }, tool, args)
      expect(isError).toBe(true)
      expect(text).toBe('{"code":-32001,"message":"no \\u2603","data":{"big": 9007199254740993}}')
    }
  })

  test('M13 - without data there is none', async () => {
    const body = '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}'
    expect((await withAnswer({ body }, tool, args)).text).toBe('{"code":1,"message":"m"}')
  })

  test.each([400, 401, 404, 422, 500, 302])('HTTP %i is a rejection that shows the body, cut', async (status) => {
    const { text, isError } = await withAnswer({ body: `no ${'x'.repeat(100_000)}`, status }, tool, args)
    expect(isError).toBe(true)
    expect(text).toMatch(new RegExp(`^AGENT_REJECTED: .*"weather" .*HTTP ${status} no xxx`))
    expect(text.length).toBeLessThan(3000)
  })

  test('an answer that is not JSON is a specific error', async () => {
    for (const body of ['<html>', '', Uint8Array.of(0xff)]) {
      const { text, isError } = await withAnswer({ body }, tool, args)
      expect(isError).toBe(true)
      expect(text).toMatch(/^INVALID_RESPONSE: /)
    }
  })

  test('a request that the agent never processed is an error with the reason', async () => {
    const { text, isError } = await withAnswer(unreachable, tool, args)
    expect(isError).toBe(true)
    expect(text).toMatch(/^AGENT_UNAVAILABLE: .*agent unreachable: connection refused/)
  })

  test('TOOL-28 - an agent that does not exist is a tool error, with any form of id', async () => {
    for (const agent_id of [
      'nobody',
      '',
      'WEATHER',
      '../weather',
      'x'.repeat(10_000),
      '_AGENTS_.agents/weather',
      'é\n',
    ]) {
      const { text, isError } = await bench.call(tool, { ...args, agent_id })
      expect(isError).toBe(true)
      expect(text).toMatch(/^AGENT_NOT_FOUND: .*agent_list/)
      expect(text.length).toBeLessThan(300)
    }
  })

  test('TOOL-28 - an agent that exceeds the timeout', async () => {
    const late = tool === 'agent_send' ? { timeout_seconds: 1 } : { params: { configuration: { timeout: 0.2 } } }
    const { text, isError } = await withAnswer(() => new Promise(() => {}), tool, { ...args, ...late })
    expect(isError).toBe(true)
    expect(text).toMatch(/^AGENT_TIMEOUT: .*"weather"/)
  })

  test('a cancelled wait says that the agent may have the request', async () => {
    const controller = new AbortController()
    const call = withAnswer(
      () => {
        controller.abort(new Error('shutting down'))
        return new Promise(() => {})
      },
      tool,
      args,
      controller.signal,
    )
    expect(await call).toMatchObject({ isError: true, text: expect.stringMatching(/^CANCELLED: .*"weather"/) })
  })
})

describe('tools - agent_info', () => {
  test('TOOL-25 - an agent that does not exist is a tool error with the remedy', async () => {
    for (const agent_id of ['nobody', '', '__proto__']) {
      const { text, isError } = await bench.call('agent_info', { agent_id })
      expect(isError).toBe(true)
      expect(text).toMatch(/^AGENT_NOT_FOUND: .*agent_list/)
    }
  })
})

test('Pages - a large reply of an agent is read a piece at a time', () => {
  const body = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${JSON.stringify('x'.repeat(10_000_000))}}`)
  expect([...agentOutcome('weather', { executed: true, error: '', status: 200, body })].length).toBeGreaterThan(10)
})
