import { TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { expect, test } from 'vitest'

import { call, inspect } from './support/inspector.ts'
import { serve } from './support/server.ts'

// official-mcp-inspector.stress.ts calls every tool in all eras: each call is a process.
test('M16 - MCP Inspector connects, lists the tools and calls one', async () => {
  const { http } = await serve()
  const url = `${http.url}/mcp`
  const [{ tools }, sent] = await Promise.all([
    inspect(url, 'auto', '--method', 'tools/list'),
    call(url, 'auto', 'queue_send', { channel: 'q', body: 'm' }),
  ])
  expect(tools).toHaveLength(TOOL_NAMES.length)
  expect(sent).toBe('Message sent to queue "q".')
})
