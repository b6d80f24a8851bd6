import type { RequestFigures } from '../processes.ts'
import { openLoad, startAgent, startForwarder } from '../processes.ts'
import type { NativeCall } from '../registered-agent.ts'
import { agentCall, nativeCall, PER_SECOND, relayed, SPEAKS_10, startWithAgent, STREAMS } from '../registered-agent.ts'
import type { Alternative, Goal, Row } from '../row.ts'
import { atMost, interleave, medians, ratios } from '../row.ts'

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
function sends(yardsticks: readonly (keyof typeof YARDSTICKS)[], { calls, card, goal }: Calls): Row['run'] {
  return async (context) => {
    await using stack = new AsyncDisposableStack()
    const { process: agent, url: upstream } = await startAgent()
    stack.use(agent)
    const [first = DIALECT] = Object.values(calls)
    const alternatives: Alternative<RequestFigures>[] = []
    for (const label of yardsticks) {
      const { process, url } = await startForwarder(context, label, upstream)
      stack.use(process)
      const load = await openLoad(context, process, `${url}/`, first.json, first.headers)
      stack.defer(() => load.close())
      alternatives.push({ label, run: load.run })
    }
    const measures: { readonly name: string; readonly subject: string }[] = []
    for (const subject of context.subjects) {
      const { server, url } = await startWithAgent(context, subject, stack, {}, card)
      for (const [name, { json, headers }] of Object.entries(calls)) {
        const load = await openLoad(context, server.process, url, json, headers)
        stack.defer(() => load.close())
        alternatives.push({ label: `${subject.label}, ${name}`, run: load.run })
        measures.push({ name, subject: subject.label })
      }
    }
    const all = await interleave(context.rounds, alternatives)
    const proxies = yardsticks.map((label, i) => medians(YARDSTICKS[label], all[i] ?? []))
    return measures.map(({ name, subject }, i) => {
      const rounds = all[yardsticks.length + i] ?? []
      return {
        name,
        subject,
        goal,
        unit: '×',
        samples: ratios(rounds, all[0] ?? [], (figures) => figures['CPU µs/request']),
        details: Object.assign({ ...medians('signalbox', rounds) }, ...proxies),
      }
    })
  }
}

/** Compares the streams with a relay of bytes. */
function streams({ calls, card, goal }: Calls): Row['run'] {
  return async (context) => {
    await using stack = new AsyncDisposableStack()
    const { process: agent, url: upstream } = await startAgent()
    stack.use(agent)
    const { process: relay, url } = await startForwarder(context, 'node-forwarder', upstream)
    stack.use(relay)
    const [first = DIALECT_STREAM] = Object.values(calls)
    const bare = await relayed(context, relay, agent, `${url}/`, first)
    stack.use(bare.readers)
    const alternatives = [{ label: 'bare relay', run: bare.run }]
    const measures: { readonly name: string; readonly subject: string }[] = []
    for (const subject of context.subjects) {
      for (const [name, call] of Object.entries(calls)) {
        // A server each: all open streams of an agent have the events of a run.
        const { server, agent: own, url: at } = await startWithAgent(context, subject, stack, {}, card)
        const measured = await relayed(context, server.process, own, at, call)
        stack.use(measured.readers)
        alternatives.push({ label: `${subject.label}, ${name}`, run: measured.run })
        measures.push({ name, subject: subject.label })
      }
    }
    const [yardstick = [], ...all] = await interleave(context.rounds, alternatives)
    return measures.map(({ name, subject }, i) => {
      const rounds = all[i] ?? []
      return {
        name,
        subject,
        goal,
        unit: '×',
        samples: ratios(rounds, yardstick, (figures) => figures['CPU µs/event']),
        details: { ...medians('signalbox', rounds), ...medians('bare relay', yardstick) },
      }
    })
  }
}
