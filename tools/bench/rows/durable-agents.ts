import { ClosedLoop, postBytes } from '@signalbox/testkit/http-connection'
import { askJson } from '@signalbox/testkit/loopback'

import { startServer, warmLoad } from '../processes.ts'
import type { NativeCall } from '../registered-agent.ts'
import { nativeCall, NUMBER, numbered, relayed, SPEAKS_10, startWithAgent, STREAMS } from '../registered-agent.ts'
import type { BenchContext, Row } from '../row.ts'
import { atMost, compare, medians, ratios } from '../row.ts'
import type { Subject } from '../subject.ts'

/** The events of each stream in a second, as a quick model sends them. */
const EVENTS_PER_SECOND = 200

/** The callers of an inbox, each of which is its own lessee. */
const INBOX_CALLERS = 8

/** The callers of a keyed send. */
const CALLERS = 32
const DURABLE = { a2a: { ...SPEAKS_10.a2a, durable: true } }

/** A call whose message has another id each time. */
function fresh(operation: 'send' | 'stream'): NativeCall {
  const call = nativeCall('1.0', operation)
  return { ...call, json: call.json.replace('"messageId":"m"', `"messageId":"${NUMBER}"`) }
}

type Figures = Readonly<Record<string, number>>

/** The cost of keeping answers and events, against the same calls without that. */
export const durableAgents: Row = {
  id: 'durable-agents',
  title: 'calls and streams of agents whose answers are kept vs the same without a log, and requests of an inbox',
  run: (context) =>
    compare<Figures>(context, {
      open: async (subject, stack) => [
        await events(context, subject, stack, SPEAKS_10),
        await events(context, subject, stack, DURABLE),
        await sends(context, subject, stack, {}),
        await sends(context, subject, stack, { 'Idempotency-Key': NUMBER }),
        await inbox(context, subject, stack),
      ],
      judge: ([plainEvents = [], keptEvents = [], plainSends = [], keyedSends = [], items = []]) => [
        {
          name: `${STREAMS} streams of ${EVENTS_PER_SECOND} events/s, CPU in the log vs without`,
          goal: atMost(1.3, 1.15, '×'),
          unit: '×',
          samples: ratios(keptEvents, plainEvents, (figures) => figures['CPU µs/event'] ?? Number.NaN),
          details: { ...medians('kept', keptEvents), ...medians('plain', plainEvents) },
        },
        {
          name: `sends of ${CALLERS} callers, CPU with a key vs without`,
          goal: atMost(1.15, 1.05, '×'),
          unit: '×',
          samples: ratios(keyedSends, plainSends, (figures) => figures['CPU µs/request'] ?? Number.NaN),
          details: { ...medians('keyed', keyedSends), ...medians('plain', plainSends) },
        },
        {
          name: 'send, lease and answer of a request of an inbox, CPU',
          goal: undefined,
          unit: 'µs',
          samples: items.map((figures) => figures['CPU µs/request'] ?? Number.NaN),
          details: {},
        },
      ],
    }),
}

async function events(context: BenchContext, subject: Subject, stack: AsyncDisposableStack, card: object) {
  const { server, agent, url } = await startWithAgent(context, subject, stack, {}, card)
  return relayed(context, stack, { between: server.process, agent, url }, fresh('stream'), EVENTS_PER_SECOND)
}

async function sends(
  context: BenchContext,
  subject: Subject,
  stack: AsyncDisposableStack,
  headers: Readonly<Record<string, string>>,
) {
  const { server, url } = await startWithAgent(context, subject, stack, {}, SPEAKS_10)
  const call = nativeCall('1.0', 'send')
  const request = numbered(postBytes(url, call.json, { ...call.headers, ...headers }))
  const loop = stack.adopt(await ClosedLoop.open(url, request, CALLERS), (open) => open.close())
  return warmLoad(context, server.process, loop)
}

/** Sends, leases and answers requests of a pull agent, one after another at each of the callers. */
async function inbox(context: BenchContext, subject: Subject, stack: AsyncDisposableStack) {
  const server = stack.use(await startServer(context, subject, { env: { LIMITS_CALLER_RUNS: '0' } }))
  const queue = { max_messages: 100_000, max_per_caller: 100_000 }
  await askJson(`${server.http}/agents/register`, {
    body: { agent_id: 'bench', name: 'Bench', a2a: { pull: true, queue } },
  })
  const call = fresh('send')
  const headers = { ...call.headers }
  const next = numbered(
    postBytes(
      `${server.http}/a2a/bench`,
      call.json.replace('"message":{', '"configuration":{"returnImmediately":true},"message":{'),
      headers,
    ),
  )
  const cycle = async (): Promise<void> => {
    const body = next().toString().split('\r\n\r\n')[1] ?? ''
    await ask(`${server.http}/a2a/bench`, body, headers)
    const leased = (await ask(`${server.http}/agents/bench/inbox/lease`, '{"max":1}')) as {
      items: { receipt: string }[]
    }
    const receipt = leased.items[0]?.receipt
    const done = { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } }
    await ask(`${server.http}/agents/bench/inbox/events`, JSON.stringify({ receipt, offset: 0, events: [done] }))
  }
  const run = async (): Promise<Figures> => {
    const begin = performance.now()
    const before = await server.process.cpuMicros()
    let requests = 0
    const caller = async (): Promise<void> => {
      while (performance.now() < begin + context.roundMs) {
        await cycle()
        requests++
      }
    }
    await Promise.all(Array.from({ length: INBOX_CALLERS }, caller))
    return { 'CPU µs/request': ((await server.process.cpuMicros()) - before) / requests }
  }
  await run()
  return run
}

async function ask(url: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  return response.json()
}
