import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { testFolder } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'

import { serve } from './support/server.ts'

const bridge = join(dirname(createRequire(import.meta.url).resolve('mcp-remote/package.json')), 'dist/proxy.js')

test.each([
  ['2025-11-25', 'legacy'],
  ['2026-07-28', 'auto'],
] as const)(
  'M1, M16 - a host of %s that starts local programs reaches the server through mcp-remote',
  async (version, mode) => {
    const { http } = await serve()
    const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } })
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [bridge, `${http.url}/mcp`],
      env: { MCP_REMOTE_CONFIG_DIR: testFolder(), PATH: process.env['PATH'] ?? '' },
      stderr: 'ignore',
    })
    onTestFinished(() => client.close())
    await client.connect(transport)
    expect(client.getNegotiatedProtocolVersion()).toBe(version)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain('queue_send')
    const sent = await client.callTool({ name: 'queue_send', arguments: { channel: 'q', body: 'hello' } })
    expect(sent).toMatchObject({ isError: false, structuredContent: { channel: 'q' } })
  },
)
