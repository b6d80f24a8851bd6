import { encodeText } from '@signalbox/broker-core'
import { describe, expect, test } from 'vitest'

import { HOST_KINDS } from './mcp-host.ts'
import { resultText, rpc, startHost, toolCall, waitingReceive } from './mcp-host.ts'
import { RawConnection } from '@signalbox/testkit/raw-connection'

const STREAM = { Accept: 'text/event-stream' }

describe.each(HOST_KINDS)('M3 streams on %s', (kind) => {
  test('M3, MCP-2 - GET opens a stream with a comment at once, and keepalive comments', async () => {
    const host = await startHost({ keepAliveMs: 5 }, kind)
    const connection = await RawConnection.open(host.port)
    connection.socket.write('GET /mcp HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nMCP-Session-Id: s-1\r\n\r\n')
    const head = await connection.until('\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1\.1 200 OK/)
    expect(head).toMatch(/content-type: text\/event-stream\r\n/i)
    expect(head).toMatch(/mcp-session-id: s-1\r\n/i)
    expect(head).toMatch(/mcp-protocol-version: 2025-11-25\r\n/i)
    expect(await connection.until('\n\n')).toContain(': ')
    expect(await connection.until(': keepalive\n\n')).toContain(': keepalive')
  })

  test('M3 - GET without an Accept that names event streams is 406', async () => {
    const host = await startHost({}, kind)
    for (const accept of [undefined, 'application/json', '*/*', 'text/html', 'text/event-stream;q=0']) {
      const response = await fetch(host.url, accept === undefined ? {} : { headers: { Accept: accept } })
      expect(response.status, accept).toBe(406)
      expect(await response.json(), accept).toMatchObject({ id: null, error: { code: -32600 } })
    }
  })

  test('M3 - over the limit it is 503, and a stream that ends makes room', async () => {
    const host = await startHost({ maxStreams: 2 }, kind)
    const connections = await Promise.all([RawConnection.open(host.port), RawConnection.open(host.port)])
    for (const connection of connections) {
      connection.socket.write('GET /mcp HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n')
      await connection.until(': open')
    }
    expect(host.connector.openStreams()).toBe(2)
    const over = await fetch(host.url, { headers: STREAM })
    expect(over.status).toBe(503)
    expect(await over.json()).toMatchObject({ id: null, error: { code: -32603 } })
    connections[0].kill()
    await expect.poll(() => host.connector.openStreams()).toBe(1)
    const again = await fetch(host.url, { headers: STREAM })
    expect(again.status).toBe(200)
    expect(host.connector.openStreams()).toBe(2)
    await host.connector.close(0)
    expect(await again.text()).toBe(': open\n\n')
  })

  test('S9 - a stream ends when the token that opened it does', async () => {
    const host = await startHost(
      { authenticator: { authenticate: () => ({ clientId: 'me', expiresAt: Date.now() + 30 }) } },
      kind,
    )
    const response = await fetch(host.url, { headers: STREAM })
    expect(await response.text()).toBe(': open\n\n')
    expect(host.connector.openStreams()).toBe(0)
  })
})

describe.each(HOST_KINDS)('shutdown on %s', (kind) => {
  test('shutdown - waiting receives end with an empty result, streams end, late requests get an error', async () => {
    const host = await startHost({}, kind)
    const streams = await Promise.all([1, 2, 3].map(() => fetch(host.url, { headers: STREAM })))
    const late = await RawConnection.open(host.port)
    late.post('/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' })
    await late.answer()
    const receives = [await waitingReceive(host, { id: 1 }), await waitingReceive(host, { id: 2 })]
    await host.connector.close(0)
    for (const { answer } of receives) {
      expect((await answer)?.result).toMatchObject({ isError: false })
      expect(resultText(await answer)).toBe('[]')
    }
    for (const stream of streams) expect(await stream.text()).toBe(': open\n\n')
    late.post('/mcp', toolCall('queue_send', { channel: 'q', body: 'x' }))
    const refused = await late.answer()
    expect(refused.status).toBe(503)
    // In the style of fetch the connection is the host's.
    expect(/connection: close/i.test(refused.head)).toBe(kind !== 'hono')
    expect(rpc(refused)).toMatchObject({ error: { code: -32603 } })
    await host.connector.close(0)
  })

  test('shutdown - a query has its time to finish, and is ended after that', async () => {
    const host = await startHost({}, kind)
    const arrived = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<void>()
    await host.user.queries.subscribe('quick', {}, async () => {
      arrived.resolve()
      await answer.promise
      return { executed: true, error: '', body: encodeText('done'), metadata: '', tags: {} }
    })
    const quick = host.call('query_send', { channel: 'quick', body: 'x', timeout_seconds: 60 })
    await arrived.promise
    const closed = host.connector.close(30_000)
    answer.resolve()
    expect(resultText(await quick)).toBe('done')
    await closed
  })

  test('shutdown - a query that takes longer ends with a result that names the shutdown', async () => {
    const host = await startHost({}, kind)
    const slow = host.call('query_send', { channel: 'nobody', body: 'x', timeout_seconds: 60 })
    const { answer: receive } = await waitingReceive(host)
    // Ended at once, while the query has its time: so the query is there.
    const closed = host.connector.close(10)
    await receive
    await closed
    const result = await slow
    expect(rpc(result).result).toMatchObject({ isError: true })
    expect(resultText(result)).toContain('shutting down')
  })
})
