import { postBytes } from '../../harness/keep-alive-connection.ts'
import type { MeasuredProcess } from '../../harness/measured-process.ts'
import { startAgent, startForwarder } from '../processes.ts'
import { agentCall, startWithAgent } from '../registered-agent.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { BenchContext, Row } from '../row.ts'
import { SseReaders } from '../sse-readers.ts'
import type { Emission } from '../workers/agent.ts'
import { atMost } from './goals.ts'

const STREAMS = 50
const PER_SECOND = 100

/**
 * Streams from an agent through the measured process; each run sends events on all of them and waits until all have
 * arrived.
 */
async function relayed(context: BenchContext, between: MeasuredProcess, agent: MeasuredProcess, url: string) {
  const request = postBytes(url, agentCall('message/stream'))
  const readers = await SseReaders.open({ url, count: STREAMS, request, mark: 'data: {' })
  const emission: Emission = {
    events: Math.ceil((context.roundMs / 1000) * PER_SECOND),
    perSecond: PER_SECOND,
    bytes: 512,
  }
  const events = emission.events * STREAMS
  const run = async () => {
    const all = readers.receive(events)
    const before = await between.cpuMicros()
    await agent.call('emit', emission)
    await all
    return { 'CPU µs/event': ((await between.cpuMicros()) - before) / events }
  }
  await run()
  return { readers, run }
}

/** The cost of relaying one event of an agent's stream, against relaying its bytes. */
export const row: Row = {
  id: 'a2a-stream',
  title: 'stream events relayed: CPU per event vs a bare SSE relay',
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const { process: agent, url: upstream } = await startAgent()
    stack.use(agent)
    const { process: relay, url } = await startForwarder(context, 'node-forwarder', upstream)
    stack.use(relay)
    const bare = await relayed(context, relay, agent, `${url}/`)
    stack.use(bare.readers)
    const alternatives = [{ label: 'bare relay', run: bare.run }]
    for (const subject of context.subjects) {
      const { server, agent: own, url: at } = await startWithAgent(context, subject, stack)
      const measured = await relayed(context, server.process, own, at)
      stack.use(measured.readers)
      alternatives.push({ label: subject.label, run: measured.run })
    }
    const [yardstick = [], ...measured] = await interleave(context.rounds, alternatives)
    return context.subjects.map((subject, i) => {
      const rounds = measured[i] ?? []
      return {
        name: `message/stream, ${STREAMS} streams of ${PER_SECOND} events/s, CPU vs a bare relay`,
        subject: subject.label,
        goal: atMost(2.5, 1.5, '×'),
        samples: ratios(rounds, yardstick, (figures) => figures['CPU µs/event']),
        details: { ...medians('signalbox', rounds), ...medians('bare relay', yardstick) },
      }
    })
  },
}
