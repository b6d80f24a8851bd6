import type * as Client from '@signalbox/client'
import type { LoadResult } from '@signalbox/testkit/http-connection'
import { KeepAliveConnection, postBytes } from '@signalbox/testkit/http-connection'
import { toolCall, toolResult } from '@signalbox/testkit/mcp-client'

import type { Guard } from '../guarded.ts'
import { guard } from '../guarded.ts'
import type { RequestFigures } from '../processes.ts'
import { FRESH_ID, openLoad, startEcho, startServer, warmLoad } from '../processes.ts'
import type { BenchContext, Goal, Measure, Row, Run } from '../row.ts'
import { atLeast, atMost, compare, medians, ratios } from '../row.ts'
import { packageEntry } from '../subject.ts'
import { measure } from '../workers/work.ts'

/** The cheapest call that reads a queue, which {@link emptyQueue} creates. */
export const CHEAP_CALL = { name: 'queue_peek', args: { channel: 'bench.empty', max_messages: 1 } } as const

/** Creates an empty queue. */
export async function emptyQueue(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const { channel } = CHEAP_CALL.args
  const connection = await KeepAliveConnection.open(url)
  for (const call of [
    toolCall('queue_send', { channel, body: 'x' }),
    toolCall('queue_receive', { channel, max_messages: 1 }),
    toolCall(CHEAP_CALL.name, CHEAP_CALL.args),
  ]) {
    const { body } = await connection.request(postBytes(url, call, headers))
    const { isError, text } = toolResult(body.toString())
    if (isError) throw new Error(text)
  }
  connection.close()
}

const JSON_TEXT = toolCall(CHEAP_CALL.name, CHEAP_CALL.args)

/** The cost of the protocol alone: a call with almost no work, on an open server and on a guarded one. */
export const toolCallRow: Row = {
  id: 'tool-call',
  title: 'cheap `tools/call` vs Fastify echo; metrics on',
  run: async (context) => [
    ...(await againstEcho(context, {
      name: 'queue_peek on an empty queue, CPU vs Fastify echo; request log and authentication off',
      goal: atLeast(0.65, 0.85),
      json: JSON_TEXT,
      prepare: emptyQueue,
    })),
    ...(await againstEcho(context, {
      name: 'the same with one log line, cached JWT and authorization',
      goal: atLeast(0.45, 0.55),
      json: JSON_TEXT,
      guard: await guard(context),
      prepare: emptyQueue,
    })),
  ],
}

/** The cost of a durable send for an MCP client. */
export const queueSend: Row = {
  id: 'queue-send',
  title: 'durable `queue_send` 1 KiB over MCP vs Fastify echo of the same body',
  run: (context) =>
    againstEcho(context, {
      name: 'queue_send 1 KiB, CPU vs Fastify echo',
      goal: atLeast(0.5, 0.75),
      json: toolCall('queue_send', { channel: 'bench.send', body: 'a'.repeat(1024) }),
    }),
}

/** Compares the CPU of one `tools/call` with that of a Fastify echo of the same JSON. */
function againstEcho(
  context: BenchContext,
  options: {
    readonly name: string
    readonly goal: Goal
    readonly json: string
    /** Settings of the servers; the echo has none. @default no authentication, no authorization, no request log */
    readonly guard?: Guard
    /** Run once on the server before it is measured. */
    readonly prepare?: (url: string, headers: Guard['headers']) => Promise<void>
  },
): Promise<readonly Measure[]> {
  const { name, goal, json, guard: { env, headers } = { env: {}, headers: {} }, prepare } = options
  return compare<RequestFigures>(context, {
    yardsticks: async (stack) => {
      const echo = await startEcho(context)
      stack.use(echo.process)
      return [await openLoad(context, stack, echo.process, echo.url, json)]
    },
    open: async (subject, stack) => {
      const server = stack.use(await startServer(context, subject, { env }))
      const url = `${server.http}/mcp`
      await prepare?.(url, headers)
      return [await openLoad(context, stack, server.process, url, json, headers)]
    },
    judge: ([rounds = []], [echo = []]) => [
      {
        name,
        goal,
        samples: ratios(echo, rounds, (figures) => figures['CPU µs/request']),
        details: { ...medians('signalbox', rounds), ...medians('Fastify echo', echo) },
      },
    ],
  })
}

const CHANNEL = 'bench.send'
const BODY = 'a'.repeat(1024)
const ATTRIBUTES = { specversion: '1.0', id: `bench-${FRESH_ID}`, source: '/bench', type: 'bench.event' }
const MCP = { label: 'MCP', path: '/mcp', json: toolCall('queue_send', { channel: CHANNEL, body: BODY }), headers: {} }

interface Form {
  readonly label: string
  readonly path: string
  readonly json: string
  readonly headers: Readonly<Record<string, string>>
}

/** The same durable send of 1 KiB in every form that a client can use. The others are compared with the first one. */
const SENDS: readonly Form[] = [
  MCP,
  {
    label: 'structured',
    path: `/ce/queue/send?channel=${CHANNEL}`,
    json: JSON.stringify({ ...ATTRIBUTES, datacontenttype: 'text/plain', data: BODY }),
    headers: { 'Content-Type': 'application/cloudevents+json' },
  },
  {
    label: 'structured JSON',
    path: `/ce/queue/send?channel=${CHANNEL}`,
    json: JSON.stringify({ ...ATTRIBUTES, data: { text: BODY } }),
    headers: { 'Content-Type': 'application/cloudevents+json' },
  },
  {
    label: 'binary',
    path: `/ce/queue/send?channel=${CHANNEL}`,
    json: BODY,
    headers: {
      'Content-Type': 'text/plain',
      ...Object.fromEntries(Object.entries(ATTRIBUTES).map(([name, value]) => [`ce-${name}`, value])),
    },
  },
]

/** Compares the CPU of forms of a send with that of the first one. Each has a server, so that none does another's work. */
function againstFirst(context: BenchContext, forms: readonly Form[], must: number): Promise<readonly Measure[]> {
  return compare<RequestFigures>(context, {
    open: async (subject, stack) => {
      const runs: Run<RequestFigures>[] = []
      for (const { path, json, headers } of forms) {
        const server = stack.use(await startServer(context, subject))
        runs.push(await openLoad(context, stack, server.process, server.http + path, json, headers))
      }
      return runs
    },
    judge: ([first = [], ...others]) =>
      others.map((rounds, at) => ({
        name: `${forms[at + 1]?.label ?? ''} send 1 KiB, CPU vs queue_send`,
        goal: atMost(must, 1, '×'),
        samples: ratios(rounds, first, (figures) => figures['CPU µs/request']),
        details: { ...medians(forms[at + 1]?.label ?? '', rounds), ...medians('MCP', first) },
      })),
  })
}

/** The cost of a durable send over `/ce` compared with the same send over `/mcp`. Each event has a new id. */
export const ceSend: Row = {
  id: 'ce-send',
  title: 'durable send 1 KiB over CloudEvents, repeats recognized, vs a plain one over MCP',
  run: (context) => againstFirst(context, SENDS, 1.15),
}

/** The cost of recognizing a repeated send by its tag `message_id`. */
export const messageId: Row = {
  id: 'message-id',
  title: 'durable `queue_send` 1 KiB over MCP with a new `message_id` vs without',
  run: (context) => {
    const args = { channel: CHANNEL, body: BODY, tags: { message_id: `bench-${FRESH_ID}` } }
    return againstFirst(context, [MCP, { ...MCP, label: 'message_id', json: toolCall('queue_send', args) }], 1.2)
  },
}

/** The number of sends that the client has in flight. */
const SENDERS = 64

/** The cost of a message of the client library that shares a request compared with one that is sent alone. */
export const clientSend: Row = {
  id: 'client-send',
  title: 'durable send 1 KiB with the client library: shared requests vs single sends',
  run: (context) =>
    compare<RequestFigures>(context, {
      open: async (subject, stack) => {
        const { connect } = (await import(packageEntry(subject, 'client'))) as typeof Client
        const runs: Run<RequestFigures>[] = []
        for (const batch of [true, false]) {
          const server = stack.use(await startServer(context, subject))
          const queue = stack.use(connect(server.http, { batch })).queue(CHANNEL)
          const run = async (durationMs: number): Promise<LoadResult> => {
            const { operations, wallMs } = await measure(SENDERS, durationMs, async () => {
              await queue.send(BODY)
              return 1
            })
            return { requests: operations, wallMs }
          }
          runs.push(await warmLoad(context, server.process, { run }))
        }
        return runs
      },
      judge: ([shared = [], single = []]) => [
        {
          name: `CPU of the server for a single send vs one of ${SENDERS} in flight that share requests`,
          goal: atLeast(3, 4),
          samples: ratios(single, shared, (figures) => figures['CPU µs/request']),
          details: { ...medians('shared', shared), ...medians('single', single) },
        },
      ],
    }),
}
