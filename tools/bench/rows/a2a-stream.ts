import { startAgent, startForwarder } from '../processes.ts'
import { agentCall, startWithAgent } from '../registered-agent.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import { PER_SECOND, relayed, STREAMS } from '../relayed-streams.ts'
import type { Row } from '../row.ts'
import { atMost } from './goals.ts'

/** The cost of relaying one event of an agent's stream, against relaying its bytes. */
export const row: Row = {
  id: 'a2a-stream',
  title: 'stream events relayed: CPU per event vs a bare SSE relay',
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const call = { json: agentCall('message/stream'), headers: {} }
    const { process: agent, url: upstream } = await startAgent()
    stack.use(agent)
    const { process: relay, url } = await startForwarder(context, 'node-forwarder', upstream)
    stack.use(relay)
    const bare = await relayed(context, relay, agent, `${url}/`, call)
    stack.use(bare.readers)
    const alternatives = [{ label: 'bare relay', run: bare.run }]
    for (const subject of context.subjects) {
      const { server, agent: own, url: at } = await startWithAgent(context, subject, stack)
      const measured = await relayed(context, server.process, own, at, call)
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
