import { toolCall } from '../../harness/mcp.ts'
import type { Row } from '../row.ts'
import { atLeast } from './goals.ts'
import { againstEcho } from './http-against-echo.ts'

/** The cost of a durable send for an MCP client. */
export const row: Row = {
  id: 'queue-send',
  title: 'durable `queue_send` 1 KiB over MCP vs Fastify echo of the same body',
  run: (context) =>
    againstEcho(context, {
      name: 'queue_send 1 KiB, CPU vs Fastify echo',
      goal: atLeast(0.5, 0.75),
      json: toolCall('queue_send', { channel: 'bench.send', body: 'a'.repeat(1024) }),
    }),
}
