import { encodeText } from '@signalbox/broker-core'
import { expect, test } from 'vitest'

import type { HostKind, McpHost } from './mcp-host.ts'
import { resultText, startHost, toolCall } from './mcp-host.ts'
import { RawConnection } from '@signalbox/testkit/raw-connection'

const LONG_MS = 600_000
const RECEIVE = toolCall('queue_receive', { channel: 'q', max_messages: 10, wait_timeout_seconds: 1 })
const PING = { jsonrpc: '2.0', id: 2, method: 'ping' }

async function sendTwo(host: McpHost): Promise<void> {
  await host.user.queues.send('q', { body: encodeText('first') })
  await host.user.queues.send('q', { body: encodeText('second') })
}

const POLL = { timeout: 20_000, interval: 10 }

/** Deliverable and leased messages of the queue. */
const counts = (host: McpHost) => async (): Promise<unknown> => (await host.user.channels.info('queues', 'q')).queue

/** Receives over a raw connection and reads the whole answer. */
async function received(host: McpHost, headers: Record<string, string> = {}): Promise<RawConnection> {
  const connection = await RawConnection.open(host.port)
  connection.post('/mcp', RECEIVE, headers)
  const answer = await connection.answer()
  expect(resultText(answer)).toContain('second')
  return connection
}

/** The cases that another host than the one all of them run on has to show as well: it tells of answers and connections in its own way. */
export function hostSettlementCases(kind: HostKind): void {
  test('M14 - a client killed between its answer and its next request: its messages return at once, counted', async () => {
    const host = await startHost({ settleGraceMs: LONG_MS }, kind)
    await sendTwo(host)
    const connection = await received(host)
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 0, inFlight: 2 })
    connection.kill()
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 2, inFlight: 0 })
    const deliveries = await host.user.queues.receive('q', { maxMessages: 10 })
    expect(deliveries.map(({ message }) => [Buffer.from(message.body).toString(), message.receiveCount])).toEqual([
      ['first', 2],
      ['second', 2],
    ])
  })

  test('M14 - the next request on the same connection settles at once', async () => {
    const host = await startHost({ settleGraceMs: LONG_MS }, kind)
    await sendTwo(host)
    const connection = await received(host)
    await host.post(PING)
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 0, inFlight: 2 })
    connection.post('/mcp', PING)
    await connection.answer()
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 0, inFlight: 0 })
    connection.kill()
    expect(await counts(host)()).toMatchObject({ waiting: 0, inFlight: 0 })
  })

  test('M14 - a shutdown settles every message that the socket has accepted', async () => {
    const host = await startHost({ settleGraceMs: LONG_MS }, kind)
    await sendTwo(host)
    await received(host)
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 0, inFlight: 2 })
    await host.connector.close(0)
    expect(await counts(host)()).toMatchObject({ waiting: 0, inFlight: 0 })
  })
}

/** Every case of how a destructive read is settled. */
export function settlementCases(kind: HostKind): void {
  hostSettlementCases(kind)

  test('M14 - a request that was sent before the answer came proves nothing', async () => {
    const host = await startHost({ settleGraceMs: LONG_MS }, kind)
    await sendTwo(host)
    const connection = await RawConnection.open(host.port)
    connection.socket.cork()
    connection.post('/mcp', RECEIVE)
    connection.post('/mcp', PING)
    connection.socket.uncork()
    expect(resultText(await connection.answer())).toContain('second')
    expect((await connection.answer()).text).toBe('{"jsonrpc":"2.0","id":2,"result":{}}')
    expect(await counts(host)()).toMatchObject({ waiting: 0, inFlight: 2 })
    connection.kill()
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 2, inFlight: 0 })
  })

  test('M14 - without either, the messages are settled when the grace is over', async () => {
    const host = await startHost({ settleGraceMs: 20 }, kind)
    await sendTwo(host)
    await received(host)
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 0, inFlight: 0 })
  })

  test('M14 - a client that closes its connection in order has its messages', async () => {
    const host = await startHost({ settleGraceMs: LONG_MS }, kind)
    await sendTwo(host)
    const connection = await received(host)
    connection.socket.end()
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 0, inFlight: 0 })
  })

  test('M14 - a client that wants no keep-alive and closes in order has its messages', async () => {
    const host = await startHost({ settleGraceMs: LONG_MS }, kind)
    await sendTwo(host)
    const connection = await received(host, { Connection: 'close' })
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 0, inFlight: 2 })
    connection.socket.end()
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 0, inFlight: 0 })
  })

  test('M14 - a client without keep-alive that is killed: its messages return', async () => {
    const host = await startHost({ settleGraceMs: LONG_MS }, kind)
    await sendTwo(host)
    const connection = await received(host, { Connection: 'close' })
    connection.kill()
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 2, inFlight: 0 })
  })

  test('M14 - a connection that is not kept alive is closed by the server after the grace', async () => {
    const host = await startHost({ settleGraceMs: 20 }, kind)
    await sendTwo(host)
    const connection = await received(host, { Connection: 'close' })
    if (!connection.socket.closed) await new Promise((resolve) => connection.socket.once('close', resolve))
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 0, inFlight: 0 })
  })

  test.each(['keep-alive', 'close'])(
    'M14 - a client killed while its answer is being written: its messages come back, %s',
    async (mode) => {
      const host = await startHost({ settleGraceMs: 0 }, kind)
      await host.user.queues.send('q', { body: Buffer.alloc(20_000_000, 'x') })
      const connection = await RawConnection.open(host.port)
      connection.socket.pause()
      connection.post('/mcp', RECEIVE, { Connection: mode })
      await host.finished(({ tool }) => tool === 'queue_receive')
      expect(await counts(host)()).toMatchObject({ waiting: 0, inFlight: 1 })
      connection.kill()
      await expect.poll(counts(host), POLL).toMatchObject({ waiting: 1, inFlight: 0 })
    },
  )

  test.each([
    ['a killed client', (connection: RawConnection) => connection.kill(), 2],
    ['a next request', (connection: RawConnection) => connection.post('/mcp', PING), 0],
  ])('M14 - an answer over SSE is settled by the same rules: %s', async (_name, next, waiting) => {
    const host = await startHost({ settleGraceMs: LONG_MS }, kind)
    await sendTwo(host)
    const connection = await RawConnection.open(host.port)
    const params = { name: 'queue_receive', arguments: { channel: 'q', max_messages: 10 }, _meta: { progressToken: 1 } }
    connection.post('/mcp', { ...RECEIVE, params }, { Accept: 'application/json, text/event-stream' })
    expect(await connection.until('\r\n0\r\n\r\n')).toContain('second')
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 0, inFlight: 2 })
    next(connection)
    await expect.poll(counts(host), POLL).toMatchObject({ waiting, inFlight: 0 })
  })

  test('M14 - a shutdown rejects every message that the socket has not accepted', async () => {
    const host = await startHost({ settleGraceMs: LONG_MS }, kind)
    await host.user.queues.send('q', { body: Buffer.alloc(20_000_000, 'x') })
    const connection = await RawConnection.open(host.port)
    connection.socket.pause()
    connection.post('/mcp', RECEIVE)
    await expect.poll(counts(host), POLL).toMatchObject({ waiting: 0, inFlight: 1 })
    await host.finished(({ tool }) => tool === 'queue_receive')
    await host.connector.close(0)
    expect(await counts(host)()).toMatchObject({ waiting: 1, inFlight: 0 })
  })
}
