import { KeepAliveConnection, postBytes } from '../../harness/keep-alive-connection.ts'
import { toolCall, toolResult } from '../../harness/mcp.ts'
import type { Row } from '../row.ts'
import { atLeast } from './goals.ts'
import { againstEcho } from './http-against-echo.ts'

const CHANNEL = 'bench.empty'

/** Leaves a queue that exists and is empty. */
async function emptyQueue(url: string): Promise<void> {
  const connection = await KeepAliveConnection.open(url)
  for (const call of [
    toolCall('queue_send', { channel: CHANNEL, body: 'x' }),
    toolCall('queue_receive', { channel: CHANNEL, max_messages: 1 }),
    toolCall('queue_peek', { channel: CHANNEL, max_messages: 1 }),
  ]) {
    const { body } = await connection.request(postBytes(url, call))
    const { isError, text } = toolResult(body.toString())
    if (isError) throw new Error(text)
  }
  connection.close()
}

/** The cost of the protocol itself: a call that hardly does anything. */
export const row: Row = {
  id: 'tool-call',
  title: 'cheap `tools/call` vs Fastify echo; metrics on, request log off, authentication off',
  run: (context) =>
    againstEcho(context, {
      name: 'queue_peek on an empty queue, CPU vs Fastify echo',
      goal: atLeast(0.6, 0.75),
      json: toolCall('queue_peek', { channel: CHANNEL, max_messages: 1 }),
      prepare: emptyQueue,
    }),
}
