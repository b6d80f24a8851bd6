import { KeepAliveConnection, postBytes } from '../../harness/keep-alive-connection.ts'
import { toolCall, toolResult } from '../../harness/mcp.ts'
import { guard } from '../guarded.ts'
import type { Row } from '../row.ts'
import { atLeast } from './goals.ts'
import { againstEcho } from './http-against-echo.ts'

const CHANNEL = 'bench.empty'

/** Creates an empty queue. */
async function emptyQueue(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const connection = await KeepAliveConnection.open(url)
  for (const call of [
    toolCall('queue_send', { channel: CHANNEL, body: 'x' }),
    toolCall('queue_receive', { channel: CHANNEL, max_messages: 1 }),
    toolCall('queue_peek', { channel: CHANNEL, max_messages: 1 }),
  ]) {
    const { body } = await connection.request(postBytes(url, call, headers))
    const { isError, text } = toolResult(body.toString())
    if (isError) throw new Error(text)
  }
  connection.close()
}

const JSON_TEXT = toolCall('queue_peek', { channel: CHANNEL, max_messages: 1 })

/** The cost of the protocol alone: a call with almost no work, on an open server and on a guarded one. */
export const row: Row = {
  id: 'tool-call',
  title: 'cheap `tools/call` vs Fastify echo; metrics on',
  run: async (context) => [
    ...(await againstEcho(context, {
      name: 'queue_peek on an empty queue, CPU vs Fastify echo; request log and authentication off',
      goal: atLeast(0.65, 0.85),
      json: JSON_TEXT,
      prepare: emptyQueue,
    })),
    ...(await againstEcho(context, {
      name: 'the same with one log line, cached JWT and authorization',
      goal: atLeast(0.45, 0.55),
      json: JSON_TEXT,
      guard: await guard(context),
      prepare: emptyQueue,
    })),
  ],
}
