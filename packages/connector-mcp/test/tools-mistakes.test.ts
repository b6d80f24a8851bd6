// cspell:ignore clerc oders ordrs recieve
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type { FastifyInstance } from 'fastify'
import { fastify } from 'fastify'
import { Compile } from 'typebox/compile'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { mcpConnector } from '../src/fastify.ts'
import { TestAgentDirectory } from './agent-directory.ts'
import { statelessRequest } from './stateless-client.ts'
import type { ToolBench } from './tool-bench.ts'
import { openToolBench } from './tool-bench.ts'

/** The queue `orders`, the events store `log`, the responder of queries `prices`, and the agent `clerk`. */
let bench: ToolBench
let app: FastifyInstance
let client: Client
let url: URL

beforeAll(async () => {
  let directory: TestAgentDirectory | undefined
  bench = await openToolBench(async (system) => (directory = new TestAgentDirectory(system)))
  await directory?.register({ agent_id: 'clerk', name: 'Table Clerk' })
  await bench.user.channels.create('queues', 'orders')
  await bench.user.channels.create('events_store', 'log')
  await bench.user.queries.subscribe('prices', {}, () => ({}))
  app = fastify({ forceCloseConnections: true })
  await app.register(mcpConnector(bench.broker, directory === undefined ? {} : { agents: directory }).plugin)
  url = new URL('/mcp', await app.listen({ host: '127.0.0.1', port: 0 }))
  client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(url))
  // The client checks results of the tools it has listed.
  await client.listTools()
})

afterAll(async () => {
  await client.close()
  await app.close()
  await bench[Symbol.asyncDispose]()
})

/** All that a host shows its model of an answer: the text of each block, or the error. */
async function answerTo(tool: string, args: Record<string, unknown>): Promise<string> {
  try {
    const { content, isError } = (await client.callTool({ name: tool, arguments: args })) as CallToolResult
    const texts = content.map((block) => (block.type === 'text' ? block.text : ''))
    return `${isError === true ? 'error' : 'ok'} | ${texts.join(' | ')}`
  } catch (error) {
    return String(error).replace('McpError: MCP error ', '')
  }
}

const BODY = { body: 'x' }
const ONE = { max_messages: 1 }

/** A mistake of a model: the tool and the arguments, and a part of the answer that lets it correct itself. */
type Mistake = readonly [name: string, tool: string, args: Record<string, unknown>, answer: string | RegExp]

const MISTAKES: readonly Mistake[] = [
  ['a tool in camel case', 'queueSend', {}, /^-32602.* unknown tool "queueSend"; did you mean queue_send\?/],
  ["a tool with its host's prefix", 'mcp__signalbox__queue_peek', {}, /^-32602.*did you mean queue_peek\?/],
  ['a tool with its words swapped', 'send_query', {}, /^-32602.*did you mean query_send\?/],
  ['a misspelt tool', 'queue_recieve', {}, /^-32602.*did you mean queue_receive\?/],
  ['an invented tool', 'delete_everything', {}, /^-32602.*"delete_everything"; allowed are queue_send, /],
  [
    'a body that is JSON',
    'queue_send',
    { channel: 'orders', body: { order: 1 } },
    'body is an object; it must be a string: send the JSON as text, "{\\"order\\":1}"',
  ],
  [
    'a body that is a list',
    'events_publish',
    { channel: 'c', body: [1, 'a'] },
    'body is an array of 2; it must be a string: send the JSON as text, "[1,\\"a\\"]"',
  ],
  ['a body that is a number', 'query_send', { channel: 'prices', body: 5 }, 'body is 5; it must be a string: send "5"'],
  [
    'a body that is long JSON',
    'events_store_publish',
    { channel: 'log', body: { text: 'x'.repeat(300) } },
    'body is an object; it must be a string: send its JSON as text, in quotes and escaped',
  ],
  [
    'a tag that is a number',
    'queue_send',
    { channel: 'orders', ...BODY, tags: { priority: 1 } },
    'tags.priority is 1; it must be a string: send "1"',
  ],
  ['no body', 'queue_send', { channel: 'orders' }, 'body is missing; it must be a string'],
  [
    'another name for an argument',
    'queue_send',
    { queue: 'orders', ...BODY },
    "channel is missing; it must be a string. queue is unknown; it must be one of the tool's arguments: channel, body, ",
  ],
  ['no max_messages', 'queue_peek', { channel: 'orders' }, 'max_messages is missing; it must be a whole number from 1'],
  ['too many messages', 'queue_peek', { channel: 'orders', max_messages: 1000 }, 'max_messages is 1000; it must be a'],
  [
    'a number as text',
    'queue_peek',
    { channel: 'orders', max_messages: '5' },
    'max_messages is "5"; it must be a whole',
  ],
  ['a wildcard', 'queue_peek', { channel: 'orders.*', ...ONE }, /^-32602.*channel is "orders\.\*"; .*wildcard/],
  ['no channel name', 'queue_peek', { channel: '', ...ONE }, /^-32602.*channel is ""; it must be a channel name/],
  [
    "the broker's own channel",
    'queue_send',
    { channel: '_AGENTS_.agents/clerk', ...BODY },
    /^error \| CHANNEL_RESERVED: .*Use the agent tools/,
  ],
  [
    'a misspelt queue to send to',
    'queue_send',
    { channel: 'ordrs', ...BODY },
    'ok | Message sent to queue "ordrs". | Queue "ordrs" did not exist; this call created it.',
  ],
  [
    'a misspelt store to publish to',
    'events_store_publish',
    { channel: 'lgo', ...BODY },
    'Events store "lgo" did not exist; this call created it.',
  ],
  [
    'a misspelt queue to look at',
    'queue_peek',
    { channel: 'oders', ...ONE },
    'ok | [] | There is no channel "oders" of type queues; a similar name is "orders".',
  ],
  [
    'a store as a queue',
    'queue_receive',
    { channel: 'log', ...ONE, wait_timeout_seconds: 1 },
    'ok | [] | There is no channel "log" of type queues; the name exists as events_store.',
  ],
  [
    'a queue as a store',
    'events_store_read',
    { channel: 'orders', ...ONE },
    'ok | [] | There is no channel "orders" of type events_store; the name exists as queues.',
  ],
  [
    'a misspelt store',
    'events_store_read',
    { channel: 'lod', ...ONE },
    'ok | [] | There is no channel "lod" of type events_store; a similar name is "log".',
  ],
  [
    'an invented store',
    'events_store_read_latest',
    { channel: 'history' },
    'ok | [] | There is no channel "history" of type events_store.',
  ],
  [
    'an event for nobody',
    'events_publish',
    { channel: 'news', ...BODY },
    'ok | Event published to channel "news". | This node knows 0 subscribers of events channel "news", so the event probably reached none.',
  ],
  ['a wrong type', 'channel_info', { channel: 'orders', type: 'events' }, /^error \| .*; the name exists as queues\./],
  [
    'a misspelt channel',
    'channel_info',
    { channel: 'order', type: 'queues' },
    /^error \| .*; a similar name is "orders"\./,
  ],
  [
    'a type in the singular',
    'channel_info',
    { channel: 'orders', type: 'queue' },
    'type is "queue"; it must be one of queues,',
  ],
  [
    'a command to a queue',
    'command_send',
    { channel: 'orders', ...BODY, timeout_seconds: 1 },
    /^error \| NO_SUBSCRIBER: .* The name exists as queues\./,
  ],
  [
    'a query to a misspelt channel',
    'query_send',
    { channel: 'price', ...BODY, timeout_seconds: 1 },
    /^error \| NO_SUBSCRIBER: .* A similar name is "prices"\./,
  ],
  [
    'a timeout in ms',
    'query_send',
    { channel: 'prices', ...BODY, timeout_seconds: 60_000 },
    'whole number from 1 to 3600',
  ],
  [
    'the name of an agent for its id',
    'agent_send',
    { agent_id: 'Table Clerk', message: 'hello' },
    /^error \| AGENT_NOT_FOUND: There is no agent "Table Clerk"\. Did you mean "clerk"\?/,
  ],
  ['a misspelt agent', 'agent_info', { agent_id: 'clerc' }, /^error \| AGENT_NOT_FOUND: .* Did you mean "clerk"\?/],
  [
    'a time without a zone',
    'events_store_read',
    { channel: 'log', from_time: '2026-01-31 09:30', ...ONE },
    /^-32602.*from_time.*Z/,
  ],
  [
    'two starts of a read',
    'events_store_read',
    { channel: 'log', from_sequence: 1, from_time: '2026-01-31T09:30:00Z', ...ONE },
    'left out when from_sequence is given: use one of the two',
  ],
  [
    'half of dead-lettering',
    'queue_send',
    { channel: 'orders', ...BODY, max_receive_count: 3 },
    'max_receive_count has no effect without dead_letter_queue: this message is never dead-lettered.',
  ],
  [
    'an invented cursor',
    'channel_list',
    { cursor: '2' },
    /^-32602.*cursor.*allowed is the next cursor of the previous page/,
  ],
]

describe('tools - mistakes of models', () => {
  test.each(MISTAKES)('M7, M10 - %s is answered with what to do', async (_name, tool, args, answer) => {
    expect(await answerTo(tool, args)).toMatch(answer)
  })

  test('M10 - names that differ in numbers only are no mistake, and other names are not similar', async () => {
    await bench.user.channels.create('queues', 'shard.1')
    for (const channel of ['shard.2', 'mail', 'o']) {
      expect(await answerTo('queue_peek', { channel, ...ONE })).toBe(
        `ok | [] | There is no channel "${channel}" of type queues.`,
      )
    }
  })

  test('M10 - in 2026-07-28 the structured content of refused arguments conforms to the outputSchema', async () => {
    const { tools } = await client.listTools()
    for (const { name, outputSchema = {} } of tools) {
      const { body, headers } = statelessRequest('tools/call', { name, arguments: { wrong: 1 } })
      const init = { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers } }
      const answer = (await (await fetch(url, { ...init, body: JSON.stringify(body) })).json()) as {
        result: { isError: boolean; structuredContent: { problems: unknown[] } }
      }
      const { isError, structuredContent } = answer.result
      expect([isError, structuredContent.problems.length > 0], name).toEqual([true, true])
      expect(Compile(outputSchema).Errors(structuredContent), name).toEqual([])
    }
  })
})
