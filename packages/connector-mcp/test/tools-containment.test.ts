import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import type { AgentCard, AgentDirectory } from '@signalbox/broker-core/ports'
import type { McpHost } from './mcp-host.ts'
import { openHost, resultText, rpc } from './mcp-host.ts'

let host: McpHost
/** What stands behind the tools for one test. */
let directory: AgentDirectory

beforeAll(async () => {
  host = await openHost({
    agents: {
      list: (filter) => directory.list(filter),
      get: (agentId) => directory.get(agentId),
      request: (...request) => directory.request(...request),
    },
  })
})

afterAll(() => host[Symbol.asyncDispose]())

beforeEach(() => {
  host.failures.length = 0
  host.requests.length = 0
})

const SEND = { agent_id: 'a', message: 'Hello' }
const QUERY = { agent_id: 'a', method: 'tasks/get' }

/** A directory of one agent, whose reply is this. */
function replying(body: string): AgentDirectory {
  const card: AgentCard = { agent_id: 'a', name: 'A' }
  return {
    list: async () => [card],
    get: async () => card,
    request: async () => ({ executed: true, error: '', status: 200, body: new TextEncoder().encode(body) }),
  }
}

function nested(levels: number): string {
  return `${'['.repeat(levels)}1${']'.repeat(levels)}`
}

/** A card that fails when it is printed for the second time, after the tool is done. */
function unprintable(): AgentCard {
  let printed = 0
  return {
    agent_id: 'a',
    name: 'A',
    toJSON() {
      if (++printed > 1) throw new Error('printed twice')
      return { agent_id: 'a' }
    },
  }
}

describe('tools - what an agent answers cannot end the server', () => {
  test.each([
    { tool: 'agent_send', args: SEND },
    { tool: 'agent_query', args: QUERY },
  ])('$tool - a reply nested 5,000 levels deep is an invalid response', async ({ tool, args }) => {
    for (const body of [`{"jsonrpc":"2.0","id":1,"result":${nested(5_000)}}`, nested(5_000)]) {
      directory = replying(body)
      const answer = rpc(await host.call(tool, args))
      expect(answer.result).toMatchObject({ isError: true })
      expect(resultText(answer)).toBe(
        'INVALID_RESPONSE: invalid response from agent "a": the body is nested deeper than 128 levels.',
      )
      expect(host.failures).toEqual([])
    }
  })

  test('agent_send - a reply of 128 levels comes through as the agent wrote it', async () => {
    const result = `{ "z": 9007199254740993, "a": ${nested(126)}, "z": 2 }`
    directory = replying(`{"jsonrpc":"2.0","id":1,"result":${result}}`)
    const { text } = await host.call('agent_send', SEND)
    expect(resultText({ text })).toBe(result)
    expect(text).toContain(`"structuredContent":{"reply":${result}}`)
  })
})

describe('tools - what a tool fails with is contained', () => {
  test('tools - a result that cannot be printed is the internal error and a log line', async () => {
    const card = unprintable()
    directory = { ...replying('{}'), get: async () => card }
    const answer = rpc(await host.call('agent_info', { agent_id: 'a' }))
    expect(answer.error).toEqual({ code: -32603, message: 'internal error' })
    expect(host.failures).toEqual([new Error('printed twice')])
    expect((await host.finished(({ tool }) => tool === 'agent_info')).outcome).toBe('error')
  })

  test('tools - a directory that throws, or rejects, is the internal error and a log line', async () => {
    for (const [index, fail] of [
      () => Promise.reject(new Error('rejected')),
      () => {
        throw new Error('thrown')
      },
    ].entries()) {
      host.failures.length = 0
      directory = { ...replying('{}'), get: fail, list: fail }
      for (const [tool, args] of [
        ['agent_info', { agent_id: 'a' }],
        ['agent_list', {}],
        ['agent_send', SEND],
        ['agent_query', QUERY],
      ] as const) {
        expect(rpc(await host.call(tool, args)).error).toEqual({ code: -32603, message: 'internal error' })
      }
      expect(host.failures.map(String)).toEqual(Array(4).fill(`Error: ${['rejected', 'thrown'][index]}`))
    }
  })
})
