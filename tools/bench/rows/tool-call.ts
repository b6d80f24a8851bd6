import { KeepAliveConnection, postBytes } from '../../harness/keep-alive-connection.ts'
import { toolCall, toolResult } from '../../harness/mcp.ts'
import { guard } from '../guarded.ts'
import type { Row } from '../row.ts'
import { atLeast } from './goals.ts'
import { againstEcho } from './http-against-echo.ts'

/** The cheapest call that reads a queue, which {@link emptyQueue} creates. */
export const CHEAP_CALL = { name: 'queue_peek', args: { channel: 'bench.empty', max_messages: 1 } } as const

/** Creates an empty queue. */
export async function emptyQueue(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const { channel } = CHEAP_CALL.args
  const connection = await KeepAliveConnection.open(url)
  for (const call of [
    toolCall('queue_send', { channel, body: 'x' }),
    toolCall('queue_receive', { channel, max_messages: 1 }),
    toolCall(CHEAP_CALL.name, CHEAP_CALL.args),
  ]) {
    const { body } = await connection.request(postBytes(url, call, headers))
    const { isError, text } = toolResult(body.toString())
    if (isError) throw new Error(text)
  }
  connection.close()
}

const JSON_TEXT = toolCall(CHEAP_CALL.name, CHEAP_CALL.args)

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
