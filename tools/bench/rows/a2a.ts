import type { RequestFigures } from '../processes.ts'
import { openLoad, startAgent, startForwarder } from '../processes.ts'
import type { NativeCall } from '../registered-agent.ts'
import { agentCall, nativeCall, PER_SECOND, relayed, SPEAKS_10, startWithAgent, STREAMS } from '../registered-agent.ts'
import type { Goal, Row, Run } from '../row.ts'
import { atMost, compare, medians, ratios } from '../row.ts'

/** The calls of a row, by the name of their measure. */
interface Calls {
  readonly calls: Readonly<Record<string, NativeCall>>
  /** The members of the registration that say what the agent speaks. */
  readonly card?: object
  readonly goal: Goal | undefined
}

const DIALECT = { json: agentCall('message/send'), headers: {} }
const DIALECT_STREAM = { json: agentCall('message/stream'), headers: {} }

/** The cost of a call to an agent through the broker, against a proxy that only forwards it. */
export const a2aSend: Row = {
  id: 'a2a-send',
  title: 'A2A `message/send` through the broker vs @fastify/http-proxy in front of the same agent',
  run: sends(['http-proxy', 'node-forwarder'], {
    calls: { 'message/send, CPU vs @fastify/http-proxy': DIALECT },
    goal: atMost(1, 0.7, '×'),
  }),
}

/** The cost of a call that an official client makes. The agent speaks A2A 1.0, so the second call is translated. */
export const a2aNativeSend: Row = {
  id: 'a2a-native-send',
  title: 'a message of an official client through the broker vs @fastify/http-proxy in front of the same agent',
  run: sends(['http-proxy'], {
    calls: {
      'SendMessage in the same version, CPU vs @fastify/http-proxy': nativeCall('1.0', 'send'),
      'SendMessage translated, CPU vs @fastify/http-proxy': nativeCall('0.3', 'send'),
    },
    card: SPEAKS_10,
    goal: undefined,
  }),
}

/** The cost of relaying one event of an agent's stream, against relaying its bytes. */
export const a2aStream: Row = {
  id: 'a2a-stream',
  title: 'stream events relayed: CPU per event vs a bare SSE relay',
  run: streams({
    calls: {
      [`message/stream, ${STREAMS} streams of ${PER_SECOND} events/s, CPU vs a bare relay`]: DIALECT_STREAM,
    },
    goal: atMost(2.5, 1.5, '×'),
  }),
}

/** The cost of relaying one event to an official client. */
export const a2aNativeStream: Row = {
  id: 'a2a-native-stream',
  title: 'stream events relayed to an official client: CPU per event vs a bare SSE relay',
  run: streams({
    calls: {
      [`${STREAMS} streams of ${PER_SECOND} events/s in the same version, CPU vs a bare relay`]: nativeCall(
        '1.0',
        'stream',
      ),
      [`${STREAMS} streams of ${PER_SECOND} events/s translated, CPU vs a bare relay`]: nativeCall('0.3', 'stream'),
    },
    card: SPEAKS_10,
    goal: undefined,
  }),
}

const YARDSTICKS = { 'http-proxy': 'http-proxy', 'node-forwarder': 'bare node:http forwarder' } as const

/** Compares the calls with the first yardstick; the others are only shown. */
function sends(names: readonly (keyof typeof YARDSTICKS)[], { calls, card, goal }: Calls): Row['run'] {
  return (context) =>
    compare<RequestFigures>(context, {
      yardsticks: async (stack) => {
        const agent = await startAgent()
        stack.use(agent.process)
        const [{ json, headers } = DIALECT] = Object.values(calls)
        const runs: Run<RequestFigures>[] = []
        for (const name of names) {
          const { process, url } = await startForwarder(context, name, agent.url)
          stack.use(process)
          runs.push(await openLoad(context, stack, process, `${url}/`, json, headers))
        }
        return runs
      },
      open: async (subject, stack) => {
        const { server, url } = await startWithAgent(context, subject, stack, {}, card)
        const runs: Run<RequestFigures>[] = []
        for (const { json, headers } of Object.values(calls)) {
          runs.push(await openLoad(context, stack, server.process, url, json, headers))
        }
        return runs
      },
      judge: (own, proxies) =>
        Object.keys(calls).map((name, i) => ({
          name,
          goal,
          unit: '×',
          samples: ratios(own[i] ?? [], proxies[0] ?? [], (figures) => figures['CPU µs/request']),
          details: Object.assign(
            medians('signalbox', own[i] ?? []),
            ...names.map((label, at) => medians(YARDSTICKS[label], proxies[at] ?? [])),
          ) as Record<string, number>,
        })),
    })
}

/** Compares the streams with a relay of bytes. */
function streams({ calls, card, goal }: Calls): Row['run'] {
  return (context) =>
    compare(context, {
      yardsticks: async (stack) => {
        const { process: agent, url: upstream } = await startAgent()
        stack.use(agent)
        const { process: relay, url } = await startForwarder(context, 'node-forwarder', upstream)
        stack.use(relay)
        const [first = DIALECT_STREAM] = Object.values(calls)
        return [await relayed(context, stack, { between: relay, agent, url: `${url}/` }, first)]
      },
      open: async (subject, stack) => {
        const runs: Run<{ readonly 'CPU µs/event': number }>[] = []
        for (const call of Object.values(calls)) {
          // A server each: all open streams of an agent have the events of a run.
          const { server, agent, url } = await startWithAgent(context, subject, stack, {}, card)
          runs.push(await relayed(context, stack, { between: server.process, agent, url }, call))
        }
        return runs
      },
      judge: (own, [bare = []]) =>
        Object.keys(calls).map((name, i) => ({
          name,
          goal,
          unit: '×',
          samples: ratios(own[i] ?? [], bare, (figures) => figures['CPU µs/event']),
          details: { ...medians('signalbox', own[i] ?? []), ...medians('bare relay', bare) },
        })),
    })
}
