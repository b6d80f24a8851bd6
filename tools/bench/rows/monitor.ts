import { McpClient, toolCall } from '../../harness/mcp.ts'
import type { SignalboxServer } from '../../harness/signalbox-server.ts'
import { MonitorReader } from '../monitor-reader.ts'
import type { RequestFigures } from '../processes.ts'
import { openLoad, startServer } from '../processes.ts'
import type { Alternative } from '../rounds.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { BenchContext, Measure, Row } from '../row.ts'
import type { Subject } from '../subject.ts'
import { atLeast, atMost } from './goals.ts'

/**
 * Each message is larger than the part that a monitor shows. Events are the cheapest to send, so a monitor has its
 * largest share there.
 */
const MESSAGE = { channel: 'bench.watched', body: 'x'.repeat(4_096) }
const QUERY = '?direction=in&max_body_size=1024'

const PACED_PER_SECOND = 1_000
const SENDERS = 10

/** Sends at a fixed pace; resolves with the number of messages that a reader was not shown. */
async function missedAtPace({ http, api }: SignalboxServer, seconds: number): Promise<number> {
  using reader = await MonitorReader.open(api, QUERY)
  const intervalMs = (SENDERS / PACED_PER_SECOND) * 1000
  const each = (PACED_PER_SECOND * seconds) / SENDERS
  const send = async () => {
    const client = await McpClient.open(http)
    const begin = performance.now()
    for (let n = 0; n < each; n++) {
      const wait = begin + n * intervalMs - performance.now()
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
      await client.call('events_publish', MESSAGE)
    }
    client.close()
  }
  await Promise.all(Array.from({ length: SENDERS }, send))
  const sent = each * SENDERS
  // The last messages are still in transit.
  for (let waits = 0; reader.messages + reader.dropped < sent && waits < 200; waits++) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return sent - reader.messages
}

async function measureSubject(context: BenchContext, subject: Subject): Promise<readonly Measure[]> {
  await using stack = new AsyncDisposableStack()
  const server = stack.use(await startServer(context, subject))
  const load = await openLoad(context, server.process, `${server.http}/mcp`, toolCall('events_publish', MESSAGE))
  stack.defer(() => load.close())
  const watched = async (stalled: boolean): Promise<RequestFigures> => {
    using reader = await MonitorReader.open(server.api, QUERY)
    if (stalled) {
      reader.stall()
      // Until the buffers of the system and the server are full, a stalled reader receives messages like a reading one.
      await load.run()
    }
    return await load.run()
  }
  const alternatives: Alternative<RequestFigures>[] = [
    { label: 'none', run: load.run },
    { label: 'reading', run: () => watched(false) },
    { label: 'stalled', run: () => watched(true) },
  ]
  const [none = [], reading = [], stalled = []] = await interleave(context.rounds, alternatives)
  const missed: number[] = []
  for (let round = 0; round < Math.min(context.rounds, 3); round++) {
    missed.push(await missedAtPace(server, context.quick ? 1 : 3))
  }
  const details = { ...medians('no monitor', none), ...medians('reading', reading), ...medians('stalled', stalled) }
  const common = { subject: subject.label, details }
  return [
    {
      ...common,
      name: 'send rate with a stalled reader vs no monitor',
      goal: atLeast(0.95, 0.98),
      samples: ratios(stalled, none, (figures) => figures['requests/s']),
    },
    {
      ...common,
      name: 'the same by CPU',
      goal: atLeast(0.95, 0.98),
      samples: ratios(none, stalled, (figures) => figures['CPU µs/request']),
    },
    {
      ...common,
      name: 'with a reading one, by CPU',
      goal: atLeast(0.5, 0.7),
      samples: ratios(none, reading, (figures) => figures['CPU µs/request']),
    },
    {
      ...common,
      name: `messages that a reader was not shown, at ${PACED_PER_SECOND}/s`,
      goal: atMost(0, 0, ''),
      samples: missed,
      details: {},
    },
  ]
}

/** The cost of a monitor for senders. */
export const row: Row = {
  id: 'monitor',
  title: 'a live monitor: send rate with a stalled reader vs none; 1,000 messages/s followed',
  run: async (context) => {
    const measures: Measure[] = []
    for (const subject of context.subjects) measures.push(...(await measureSubject(context, subject)))
    return measures
  },
}
