import { Buffer } from 'node:buffer'

import type { AgentDirectory } from '@signalbox/broker-core/ports'
import { TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { expect, test } from 'vitest'

import { startHost } from './mcp-host.ts'
import { ask } from './stateless-client.ts'

const agents: AgentDirectory = {
  list: async () => [],
  get: async () => undefined,
  request: async () => ({ executed: true, error: '', status: 200, body: new Uint8Array() }),
}

const KIB = 1024

test('M24 - tools/list with all tools has at most 16 KiB, in every revision', async () => {
  const host = await startHost({ agents })
  const older = await host.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const newest = await ask(host, 'tools/list')
  for (const { text } of [older, newest]) {
    expect(JSON.parse(text).result.tools).toHaveLength(TOOL_NAMES.length)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(16 * KIB)
  }
})
