import { readFileSync } from 'node:fs'

import type { Implementation, InitializeResult, Tool as SdkTool } from '@modelcontextprotocol/sdk/types.js'
import {
  CallToolResultSchema,
  InitializeResultSchema,
  JSONRPCErrorResponseSchema,
  JSONRPCResultResponseSchema,
  ListToolsResultSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { ServerInfo } from '../src/index.ts'
import { PROTOCOL_VERSIONS } from '../src/index.ts'
import type { ToolDefinition } from '../src/tools/tool.ts'
import type { InitializeResult as OwnInitializeResult } from '../src/wire/revision.ts'
import type { McpHost } from './mcp-host.ts'
import { openHost, rpc, toolCall } from './mcp-host.ts'

/** The compiler checks these: what the connector makes is what the SDK takes. The SDK's arrays are not readonly. */
type Mutable<T> = T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> } : T
const asImplementation = (info: ServerInfo): Implementation => info
const asInitializeResult = (result: OwnInitializeResult): Mutable<OwnInitializeResult> & InitializeResult => ({
  ...result,
  capabilities: { ...result.capabilities, tools: {} },
})
const asTool = (definition: Mutable<ToolDefinition>): Mutable<ToolDefinition> & Pick<SdkTool, 'name' | 'inputSchema'> =>
  definition

let host: McpHost

beforeAll(async () => {
  host = await openHost({
    serverInfo: { name: 'own', version: '1', title: 'Own', description: 'A host', websiteUrl: 'https://example.com' },
  })
})

afterAll(() => host[Symbol.asyncDispose]())

test.each(PROTOCOL_VERSIONS)('SDK types - the answer to initialize in %s is what the SDK expects', async (version) => {
  const answer = await host.post({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: version, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  })
  const { result } = JSONRPCResultResponseSchema.strict().parse(rpc(answer))
  expect(InitializeResultSchema.parse(result)).toEqual(result)
})

test('SDK types - the list of tools is what the SDK expects, and loses nothing in its hands', async () => {
  const { result } = rpc(await host.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }))
  expect(ListToolsResultSchema.strict().parse(result)).toEqual(result)
})

test('SDK types - results and failures of tools are what the SDK expects', async () => {
  const sent = rpc(await host.call('queue_send', { channel: 'sdk', body: 'hello' })).result
  expect(CallToolResultSchema.parse(sent)).toEqual(sent)
  const failed = rpc(await host.call('queue_send', { channel: '_AGENTS_.no', body: 'hello' })).result
  expect(CallToolResultSchema.parse(failed)).toMatchObject({ isError: true })
  const refused = rpc(await host.post(toolCall('no_such_tool', {})))
  expect(JSONRPCErrorResponseSchema.parse(refused)).toEqual(refused)
})

test('SDK types - types of the connector are assignable to those of the SDK', () => {
  const info = { name: 'own', version: '1' }
  expect(asImplementation(info)).toBe(info)
  expect(
    asInitializeResult({
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: info,
      instructions: '',
      _meta: { sessionId: 's' },
    }),
  ).toBeDefined()
  expect(asTool).toBeDefined()
})

test('package - what is packed does not mention the SDK: it is a devDependency of the workspace', () => {
  expect(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).not.toContain('@modelcontextprotocol')
})
