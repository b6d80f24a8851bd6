import type { RequestFigures } from '../processes.ts'
import { openLoad, startAgent, startForwarder } from '../processes.ts'
import { nativeCall, SPEAKS_10, startWithAgent } from '../registered-agent.ts'
import type { Alternative } from '../rounds.ts'
import { interleave, medians, ratios } from '../rounds.ts'
import type { Row } from '../row.ts'

/** The calls, by the label of their measure. The agent speaks A2A 1.0, so the second one is translated. */
const CALLS = { 'in the same version': nativeCall('1.0', 'send'), translated: nativeCall('0.3', 'send') }

/** The cost of a call that an official client makes, against a proxy that only forwards it. */
export const row: Row = {
  id: 'a2a-native-send',
  title: 'a message of an official client through the broker vs @fastify/http-proxy in front of the same agent',
  run: async (context) => {
    await using stack = new AsyncDisposableStack()
    const { process: agent, url: upstream } = await startAgent()
    stack.use(agent)
    const { process, url } = await startForwarder(context, 'http-proxy', upstream)
    stack.use(process)
    const { json, headers } = nativeCall('1.0', 'send')
    const load = await openLoad(context, process, `${url}/`, json, headers)
    stack.defer(() => load.close())
    const alternatives: Alternative<RequestFigures>[] = [{ label: 'http-proxy', run: load.run }]
    const measures: { readonly name: string; readonly subject: string }[] = []
    for (const subject of context.subjects) {
      const { server, url } = await startWithAgent(context, subject, stack, {}, SPEAKS_10)
      for (const [name, { json, headers }] of Object.entries(CALLS)) {
        const load = await openLoad(context, server.process, url, json, headers)
        stack.defer(() => load.close())
        alternatives.push({ label: `${subject.label}, ${name}`, run: load.run })
        measures.push({ name: `SendMessage ${name}, CPU vs @fastify/http-proxy`, subject: subject.label })
      }
    }
    const [proxy = [], ...measured] = await interleave(context.rounds, alternatives)
    return measures.map(({ name, subject }, i) => {
      const rounds = measured[i] ?? []
      return {
        name,
        subject,
        goal: undefined,
        unit: '×',
        samples: ratios(rounds, proxy, (figures) => figures['CPU µs/request']),
        details: { ...medians('signalbox', rounds), ...medians('http-proxy', proxy) },
      }
    })
  },
}
