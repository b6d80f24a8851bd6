import { startAgent, startForwarder } from '../processes.ts'
import { nativeCall, SPEAKS_10, startWithAgent } from '../registered-agent.ts'
import { PER_SECOND, relayed, STREAMS } from '../relayed-streams.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { Row } from '../row.ts'

/** The calls, by the label of their measure. The agent speaks A2A 1.0, so the events of the second one are translated. */
const CALLS = { 'in the same version': nativeCall('1.0', 'stream'), translated: nativeCall('0.3', 'stream') }

/** The cost of relaying one event to an official client, against relaying its bytes. */
export const row: Row = {
  id: 'a2a-native-stream',
  title: 'stream events relayed to an official client: CPU per event vs a bare SSE relay',
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const { process: agent, url: upstream } = await startAgent()
    stack.use(agent)
    const { process: relay, url } = await startForwarder(context, 'node-forwarder', upstream)
    stack.use(relay)
    const bare = await relayed(context, relay, agent, `${url}/`, nativeCall('1.0', 'stream'))
    stack.use(bare.readers)
    const alternatives = [{ label: 'bare relay', run: bare.run }]
    const measures: { readonly name: string; readonly subject: string }[] = []
    for (const subject of context.subjects) {
      for (const [name, call] of Object.entries(CALLS)) {
        // A server each: all open streams of an agent have the events of a run.
        const { server, agent: own, url: at } = await startWithAgent(context, subject, stack, {}, SPEAKS_10)
        const measured = await relayed(context, server.process, own, at, call)
        stack.use(measured.readers)
        alternatives.push({ label: `${subject.label}, ${name}`, run: measured.run })
        measures.push({
          name: `${STREAMS} streams of ${PER_SECOND} events/s ${name}, CPU vs a bare relay`,
          subject: subject.label,
        })
      }
    }
    const [yardstick = [], ...measured] = await interleave(context.rounds, alternatives)
    return measures.map(({ name, subject }, i) => {
      const rounds = measured[i] ?? []
      return {
        name,
        subject,
        goal: undefined,
        unit: '×',
        samples: ratios(rounds, yardstick, (figures) => figures['CPU µs/event']),
        details: { ...medians('signalbox', rounds), ...medians('bare relay', yardstick) },
      }
    })
  },
}
