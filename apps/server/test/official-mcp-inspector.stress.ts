import { setTimeout as pause } from 'node:timers/promises'

import { ANONYMOUS, encodeText } from '@signalbox/broker-core'
import { TOOL_NAMES, TOOLS } from '@signalbox/testkit/mcp-tools'
import { describe, expect, test } from 'vitest'

import { register, startAgent, withResult } from './support/agent.ts'
import type { Era } from './support/inspector.ts'
import { call, inspect } from './support/inspector.ts'
import { serve } from './support/server.ts'

/** Time that a query takes, in ms: longer than calls need to become tasks here. */
const LONG_MS = 300

describe.each(['legacy', 'auto', 'modern'] satisfies Era[])('MCP Inspector, era %s', (era) => {
  test('M1, M16 - it lists the tools and calls each of them', async () => {
    const { broker, http } = await serve({ connectors: { mcp: { tasks: { afterMs: 50 } } } })
    const url = `${http.url}/mcp`
    const user = broker.as(ANONYMOUS)
    await user.commands.subscribe('do', {}, () => ({}))
    await user.queries.subscribe('ask', {}, async ({ body }) => {
      await pause(LONG_MS)
      return { body: encodeText(`re: ${Buffer.from(body).toString()}`) }
    })
    const agent = await startAgent(withResult('pong'))
    await register(http.url, { agent_id: 'echo', name: 'Echo', url: agent.url })
    const { tools = [] } = await inspect(url, era, '--method', 'tools/list')
    const called = new Set<string>()
    const callTool = (name: string, args: object = {}): Promise<string> => {
      called.add(name)
      return call(url, era, name, args)
    }
    await callTool('queue_send', { channel: 'q', body: 'm' })
    expect(await callTool('queue_peek', { channel: 'q', max_messages: 1 })).toContain('"body":"m"')
    expect(await callTool('queue_receive', { channel: 'q', max_messages: 1 })).toContain('"body":"m"')
    await callTool('events_publish', { channel: 'e', body: 'x' })
    await callTool('events_store_publish', { channel: 's', body: 'y' })
    expect(await callTool('events_store_read', { channel: 's', max_messages: 1 })).toContain('"sequence":1')
    expect(await callTool('events_store_read_latest', { channel: 's' })).toContain('"body":"y"')
    await callTool('command_send', { channel: 'do', body: 'x' })
    // The modern client declares tasks, so that it polls for this result.
    expect(await callTool('query_send', { channel: 'ask', body: 'x' })).toBe('re: x')
    expect(await callTool('channel_list')).toContain('"name":"q"')
    expect(await callTool('channel_info', { channel: 's', type: 'events_store' })).toContain('"incoming":1')
    expect(await callTool('agent_list')).toContain('"agent_id":"echo"')
    expect(await callTool('agent_info', { agent_id: 'echo' })).toContain('"name":"Echo"')
    expect(await callTool('agent_send', { agent_id: 'echo', message: 'hi' })).toBe('"pong"')
    expect(await callTool('agent_query', { agent_id: 'echo', method: 'tasks/get' })).toBe('"pong"')
    expect(tools.map(({ name }) => name)).toEqual(TOOL_NAMES)
    for (const { name, args } of TOOLS) if (!called.has(name)) await callTool(name, args)
  }, 120_000)
})
