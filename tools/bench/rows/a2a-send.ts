import type { RequestFigures } from '../processes.ts'
import { openLoad, startAgent, startForwarder } from '../processes.ts'
import { agentCall, startWithAgent } from '../registered-agent.ts'
import type { Alternative } from '../rounds.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { Row } from '../row.ts'
import { atMost } from './goals.ts'

/** The cost of a call to an agent through the broker, against a proxy that only forwards it. */
export const row: Row = {
  id: 'a2a-send',
  title: 'A2A `message/send` through the broker vs @fastify/http-proxy in front of the same agent',
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const json = agentCall('message/send')
    const { process: agent, url: upstream } = await startAgent()
    stack.use(agent)
    const alternatives: Alternative<RequestFigures>[] = []
    for (const label of ['http-proxy', 'node-forwarder'] as const) {
      const { process, url } = await startForwarder(context, label, upstream)
      stack.use(process)
      const load = await openLoad(context, process, `${url}/`, json)
      stack.defer(() => load.close())
      alternatives.push({ label, run: load.run })
    }
    for (const subject of context.subjects) {
      const { server, url } = await startWithAgent(context, subject, stack)
      const load = await openLoad(context, server.process, url, json)
      stack.defer(() => load.close())
      alternatives.push({ label: subject.label, run: load.run })
    }
    const [proxy = [], forwarder = [], ...measured] = await interleave(context.rounds, alternatives)
    return context.subjects.map((subject, i) => {
      const rounds = measured[i] ?? []
      return {
        name: 'message/send, CPU vs @fastify/http-proxy',
        subject: subject.label,
        goal: atMost(1, 0.7, '×'),
        samples: ratios(rounds, proxy, (figures) => figures['CPU µs/request']),
        details: {
          ...medians('signalbox', rounds),
          ...medians('http-proxy', proxy),
          ...medians('bare node:http forwarder', forwarder),
        },
      }
    })
  },
}
