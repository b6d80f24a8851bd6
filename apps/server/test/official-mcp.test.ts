import { ANONYMOUS, encodeText } from '@signalbox/broker-core'
import { TOOL_NAMES, TOOLS } from '@signalbox/testkit/mcp-tools'
import { describe, expect, onTestFinished, test } from 'vitest'

import { register, startAgent, withResult } from './support/agent.ts'
import { callTool } from './support/mcp.ts'
import type { ClientResult } from './support/official-clients.ts'
import { OFFICIAL_CLIENTS } from './support/official-clients.ts'
import { serve } from './support/server.ts'

/** Arguments that fail the schema are a result in 2026-07-28, and an error in the older revisions. */
function failed(error: unknown): ClientResult {
  return { isError: true, text: String(error) }
}

describe.each(OFFICIAL_CLIENTS)('$name', ({ version, progress, cancels, connect }) => {
  test(`M1, M16 - it speaks ${version} and sees every tool`, async () => {
    const { http } = await serve()
    const client = await connect(`${http.url}/mcp`)
    expect(client.version).toBe(version)
    expect(client.instructions).toContain('message broker')
    expect(await client.tools()).toEqual(TOOL_NAMES)
  })

  test('M16, M17 - it calls every tool', async () => {
    const { broker, http } = await serve()
    const user = broker.as(ANONYMOUS)
    await user.commands.subscribe('do', {}, () => ({}))
    await user.queries.subscribe('ask', {}, ({ body }) => ({ body: encodeText(`re: ${Buffer.from(body).toString()}`) }))
    const agent = await startAgent(withResult('pong'))
    await register(http.url, { agent_id: 'echo', name: 'Echo', url: agent.url })
    const client = await connect(`${http.url}/mcp`)
    // The clients check results against the output schemas once they know them.
    await client.tools()
    const called = new Set<string>()
    const call = async (name: string, args: Record<string, unknown> = {}): Promise<string> => {
      called.add(name)
      const { text, isError } = await client.call(name, args)
      expect([name, text, isError]).toEqual([name, text, false])
      return text
    }
    await call('queue_send', { channel: 'q', body: 'm' })
    expect(await call('queue_peek', { channel: 'q', max_messages: 1 })).toContain('"body":"m"')
    expect(await call('queue_receive', { channel: 'q', max_messages: 1 })).toContain('"body":"m"')
    await call('events_publish', { channel: 'e', body: 'x' })
    await call('events_store_publish', { channel: 's', body: 'y' })
    expect(await call('events_store_read', { channel: 's', max_messages: 1 })).toContain('"sequence":1')
    expect(await call('events_store_read_latest', { channel: 's' })).toContain('"body":"y"')
    await call('command_send', { channel: 'do', body: 'x' })
    expect(await call('query_send', { channel: 'ask', body: 'x' })).toBe('re: x')
    expect(await call('channel_list')).toContain('"name":"q"')
    expect(await call('channel_info', { channel: 's', type: 'events_store' })).toContain('"incoming":1')
    expect(await call('agent_list')).toContain('"agent_id":"echo"')
    expect(await call('agent_info', { agent_id: 'echo' })).toContain('"name":"Echo"')
    expect(await call('agent_send', { agent_id: 'echo', message: 'hi' })).toBe('"pong"')
    expect(await call('agent_query', { agent_id: 'echo', method: 'tasks/get' })).toBe('"pong"')
    for (const { name, args } of TOOLS) if (!called.has(name)) await call(name, args)
  })

  test('M7 - it reports arguments that fail the schema', async () => {
    const { http } = await serve()
    const client = await connect(`${http.url}/mcp`)
    await client.tools()
    const result = await client.call('queue_peek', { channel: 'q', max_messages: 1000 }).catch(failed)
    expect(result).toMatchObject({ isError: true, text: expect.stringContaining('max_messages is 1000; it must be') })
  })

  test.runIf(progress)('M6 - it shows progress while a receive waits, then the message', async () => {
    const { broker, http } = await serve()
    const client = await connect(`${http.url}/mcp`)
    const told = Promise.withResolvers<{ readonly message?: string | undefined }>()
    const args = { channel: 'q', max_messages: 1, wait_timeout_seconds: 60 }
    const received = client.call('queue_receive', args, { onprogress: told.resolve })
    expect((await told.promise).message).toContain('waiting for')
    await broker.as(ANONYMOUS).queues.send('q', { body: encodeText('late') })
    expect((await received).text).toContain('late')
  })

  test.runIf(cancels)('M5 - it cancels a call: the wait ends, and the signal of the responder is aborted', async () => {
    const { broker, http } = await serve()
    const asked = Promise.withResolvers<AbortSignal>()
    const work = Promise.withResolvers<void>()
    onTestFinished(() => work.resolve())
    await broker.as(ANONYMOUS).queries.subscribe('ask', {}, async (request) => {
      asked.resolve(request.signal)
      await work.promise
      return {}
    })
    const client = await connect(`${http.url}/mcp`)
    const cancel = new AbortController()
    const answer = client.call('query_send', { channel: 'ask', body: 'x' }, { signal: cancel.signal })
    const signal = await asked.promise
    const ended = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    cancel.abort(new Error('enough'))
    await expect(answer).rejects.toBeInstanceOf(Error)
    await ended
  })
})

test.each(OFFICIAL_CLIENTS)('M25 - $name leases and acknowledges with CONNECTORSMCP_LEASES', async ({ connect }) => {
  const { http } = await serve({ connectors: { mcp: { leases: true } } })
  const client = await connect(`${http.url}/mcp`)
  expect(await client.tools()).toEqual(expect.arrayContaining(['queue_ack', 'queue_nack', 'queue_extend']))
  await callTool(http.url, 'queue_send', { channel: 'work', body: 'x' })
  const leased = await client.call('queue_receive', { channel: 'work', max_messages: 1, lease_seconds: 60 })
  const [{ receipt }] = JSON.parse(leased.text) as [{ receipt: string }]
  const extended = await client.call('queue_extend', { receipts: [receipt], lease_seconds: 120 })
  expect(extended).toEqual({ text: '1 of 1 messages leased for 120 s from now.', isError: false })
  const acknowledged = await client.call('queue_ack', { receipts: [receipt] })
  expect(acknowledged).toEqual({ text: '1 of 1 messages acknowledged and removed.', isError: false })
})
