import { decodeText, encodeText } from '@signalbox/broker-core'
import { describe, expect, onTestFinished, test } from 'vitest'

import { TestAgentDirectory } from './agent-directory.ts'
import type { McpHost } from './mcp-host.ts'
import { startHost } from './mcp-host.ts'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { statelessRequest } from './stateless-client.ts'

/** A call that waits; resolves when the server says so. */
async function waitingCall(host: McpHost, name: string, args: object): Promise<RawConnection> {
  const connection = await RawConnection.open(host.port)
  const { body, headers } = statelessRequest('tools/call', { name, arguments: args }, { meta: { progressToken: 1 } })
  connection.post('/mcp', body, headers)
  await connection.until('waiting for')
  return connection
}

describe('M5 cancellation by closing the stream', () => {
  test('M5 - a closed stream ends a receive, and its messages stay', async () => {
    const host = await startHost()
    const args = { channel: 'q', max_messages: 1, wait_timeout_seconds: 60 }
    const connection = await waitingCall(host, 'queue_receive', args)
    connection.socket.end()
    expect(await host.finished(({ tool }) => tool === 'queue_receive')).toMatchObject({ outcome: 'disconnected' })
    await host.user.queues.send('q', { body: encodeText('kept') })
    const [delivery] = await host.user.queues.receive('q', { maxMessages: 1 })
    expect(delivery?.message.receiveCount).toBe(1)
  })

  test.each([
    ['query_send', 'queries'],
    ['command_send', 'commands'],
  ] as const)(
    'M5 - a closed stream ends the wait of %s at once; the signal of the subscriber is aborted, and its work goes on',
    async (tool, type) => {
      const host = await startHost()
      const arrived = Promise.withResolvers<AbortSignal>()
      const work = Promise.withResolvers<void>()
      const done = Promise.withResolvers<void>()
      const subscription = await host.user[type].subscribe('ask', {}, async (request) => {
        arrived.resolve(request.signal)
        await work.promise
        done.resolve()
        return {}
      })
      onTestFinished(() => subscription.close())
      const connection = await waitingCall(host, tool, { channel: 'ask', body: 'x', timeout_seconds: 3600 })
      const signal = await arrived.promise
      connection.kill()
      // The call is over although its subscriber still works.
      expect(await host.finished((event) => event.tool === tool)).toMatchObject({ outcome: 'disconnected' })
      expect(signal.aborted).toBe(true)
      // A shutdown waits for calls, but not for this one.
      await host.connector.close(3_600_000)
      work.resolve()
      await done.promise
      expect(host.failures).toEqual([])
    },
  )

  test('M5 - a request that no subscriber has accepted is dropped', async () => {
    const host = await startHost()
    const connection = await waitingCall(host, 'query_send', { channel: 'ask', body: 'dropped', timeout_seconds: 3600 })
    connection.kill()
    await host.finished(({ tool }) => tool === 'query_send')
    const seen: (string | undefined)[] = []
    const subscription = await host.user.queries.subscribe('ask', {}, ({ body }) => {
      seen.push(decodeText(body))
      return {}
    })
    onTestFinished(() => subscription.close())
    await host.call('query_send', { channel: 'ask', body: 'delivered' })
    expect(seen).toEqual(['delivered'])
  })

  test('M5 - a closed stream ends the wait for an agent, and the agent runs on', async () => {
    const opened = Promise.withResolvers<TestAgentDirectory>()
    const host = await startHost({
      agents: {
        list: () => Promise.resolve([]),
        get: async (agentId) => (await opened.promise).get(agentId),
        request: async (...request) => (await opened.promise).request(...request),
      },
    })
    const directory = new TestAgentDirectory(host.system)
    const called = Promise.withResolvers<void>()
    const work = Promise.withResolvers<void>()
    const done = Promise.withResolvers<void>()
    await directory.register({ agent_id: 'a1', name: 'A' }, async () => {
      called.resolve()
      await work.promise
      done.resolve()
      return { body: '{"jsonrpc":"2.0","id":1,"result":{}}' }
    })
    opened.resolve(directory)
    const connection = await waitingCall(host, 'agent_send', { agent_id: 'a1', message: 'x' })
    await called.promise
    connection.kill()
    expect(await host.finished(({ tool }) => tool === 'agent_send')).toMatchObject({ outcome: 'disconnected' })
    work.resolve()
    await done.promise
    expect(host.failures).toEqual([])
  })

  test('M5 - notifications/cancelled cancels nothing: it has no session', async () => {
    const host = await startHost()
    const args = { channel: 'q', max_messages: 1, wait_timeout_seconds: 60 }
    const connection = await waitingCall(host, 'queue_receive', args)
    const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }
    const headers = { 'MCP-Protocol-Version': '2026-07-28', 'MCP-Session-Id': 's' }
    expect((await host.post(cancelled, headers)).status).toBe(202)
    await host.user.queues.send('q', { body: encodeText('late') })
    expect(await connection.until('resultType')).toContain('result')
  })
})
