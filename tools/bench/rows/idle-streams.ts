import { Buffer } from 'node:buffer'

import { postBytes } from '../../harness/keep-alive-connection.ts'
import { agentCall, startWithAgent } from '../registered-agent.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import { SseReaders } from '../sse-readers.ts'
import type { Subject } from '../subject.ts'
import { median } from '../statistics.ts'
import { atMost } from './goals.ts'

const KIB = 1024
/** The number of streams opened and closed before the measurement, so that it excludes code, pools and caches. */
const WARM_UP = 200

/** The memory that each of many open streams adds to the server, in KiB, after a collection. */
async function kibPerStream(context: BenchContext, subject: Subject, kind: 'a2a' | 'mcp'): Promise<number> {
  const count = context.quick ? 500 : 4_000
  await using stack = new AsyncDisposableStack()
  const { server, url: agentUrl } = await startWithAgent(context, subject, stack, {
    nodeArgs: ['--expose-gc'],
    env: { CONNECTORSMCP_MAX_STREAMS: '0' },
  })
  const { host } = new URL(server.http)
  const url = kind === 'a2a' ? agentUrl : `${server.http}/mcp`
  const request =
    kind === 'a2a'
      ? postBytes(url, agentCall('message/stream'))
      : Buffer.from(`GET /mcp HTTP/1.1\r\nHost: ${host}\r\nAccept: text/event-stream\r\n\r\n`)
  const open = (streams: number) => SseReaders.open({ url, count: streams, request, mark: 'data: {' })
  const warm = await open(WARM_UP)
  warm[Symbol.dispose]()
  const before = await server.process.rssBytes()
  stack.use(await open(count))
  return ((await server.process.rssBytes()) - before) / count / KIB
}

async function measure(context: BenchContext, subject: Subject, kind: 'a2a' | 'mcp'): Promise<Measure> {
  const samples: number[] = []
  // Each round runs in a new process, whose memory is stable: three rounds are enough.
  for (let round = 0; round < Math.min(3, context.rounds); round++) {
    samples.push(await kibPerStream(context, subject, kind))
  }
  return {
    name: kind === 'a2a' ? 'idle A2A stream, both sides, RSS' : 'idle SSE stream (GET /mcp), RSS',
    subject: subject.label,
    goal: kind === 'a2a' ? atMost(70, 56, 'KiB') : atMost(30, 24, 'KiB'),
    samples,
    details: { 'KiB a stream': median(samples) },
  }
}

/** The memory of an idle stream. */
export const row: Row = {
  id: 'idle-streams',
  title: 'idle SSE stream; idle A2A stream (both sides)',
  run: async (context) => {
    const measures: Measure[] = []
    for (const subject of context.subjects) {
      for (const kind of ['a2a', 'mcp'] as const) measures.push(await measure(context, subject, kind))
    }
    return measures
  },
}
