import { jetstreamManager } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import { connect } from '@signalbox/client'
import { assertSuccess, KeepAliveConnection, postBytes } from '@signalbox/testkit/http-connection'
import { toolCall } from '@signalbox/testkit/mcp-client'
import { cpuMicrosOf } from '@signalbox/testkit/process-cpu'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'

import { startServer } from '../processes.ts'
import type { BenchContext } from '../row.ts'
import { WORKING_TREE } from '../subject.ts'
import { findNats, findRabbit, findRedis, startNats, startRabbit, startRedis } from './servers.ts'
import type { AcknowledgedSocket } from './wire.ts'
import { openNats, openRabbit, openRedis, rabbitMessage, rabbitPurge, redisCommand } from './wire.ts'

const CHANNEL = 'bench.peers'
const BODY = 'a'.repeat(1024)

/** The number of messages of a batch. */
export const BATCH = 100

/** Messages sent alone, or in batches. */
export type Shape = 'single' | 'batch'

/** Sends one message, or one batch; resolves after the acknowledgement of every message. */
export type Send = () => Promise<unknown>

/** A way to send messages to a broker. */
export interface Way {
  readonly name: string
  readonly shapes: readonly Shape[]
  /** The CPU time of all processes of the broker, in microseconds. */
  readonly cpuMicros: () => number
  /** Opens one sender. */
  open(shape: Shape): Promise<Send>
  /** Removes all messages. */
  readonly clear: Send
}

const BOTH: readonly Shape[] = ['single', 'batch']

/** Starts every broker of this machine; reports those that are not installed. */
export async function openWays(context: BenchContext, stack: AsyncDisposableStack): Promise<readonly Way[]> {
  const own = await ownWays(context, stack)
  const peers = [await redisWay(context, stack), await rabbitWay(context, stack), await natsWay(context, stack)]
  return [...own, ...peers.filter((way) => way !== undefined)]
}

async function ownWays(context: BenchContext, stack: AsyncDisposableStack): Promise<readonly Way[]> {
  const mcp = await ownServer(context, stack)
  const call = toolCall('queue_send', { channel: CHANNEL, body: BODY })
  const ce = await ownServer(context, stack)
  const shared = await ownServer(context, stack)
  const queue = stack.use(connect(shared.http)).queue(CHANNEL)
  const send = () => queue.send(BODY)
  const sendAll = () => Promise.all(Array.from({ length: BATCH }, send))
  return [
    { ...mcp, name: 'Signalbox, MCP', shapes: ['single'], open: () => post(`${mcp.http}/mcp`, () => call) },
    { ...ce, name: 'Signalbox, CloudEvents', shapes: BOTH, open: (shape) => eventSender(ce.http, shape) },
    {
      ...shared,
      name: 'Signalbox, client library',
      shapes: BOTH,
      open: (shape) => Promise.resolve(shape === 'batch' ? sendAll : send),
    },
  ]
}

/** Starts a server for one way, so that it does the work of no other way. */
async function ownServer(context: BenchContext, stack: AsyncDisposableStack) {
  const { http, api, process }: SignalboxServer = stack.use(await startServer(context, WORKING_TREE))
  const clear = await post(`${api}/api/actions/purge_queue`, () => JSON.stringify({ channel: CHANNEL }))
  return { http, clear, cpuMicros: () => cpuMicrosOf(process.pid) }
}

async function post(url: string, json: () => string, headers: Readonly<Record<string, string>> = {}): Promise<Send> {
  let connection = await KeepAliveConnection.open(url)
  return async () => {
    // The server closes connections that were idle while other ways ran.
    if (!connection.isOpen) connection = await KeepAliveConnection.open(url)
    assertSuccess(await connection.request(postBytes(url, json(), headers)))
  }
}

let events = 0

/** Returns the JSON of an event with a new id: a repeated one would not be stored. */
function newEvent(): string {
  const attributes = { specversion: '1.0', id: `bench-${++events}`, source: '/bench', type: 'bench.event' }
  return JSON.stringify({ ...attributes, datacontenttype: 'text/plain', data: BODY })
}

function eventSender(http: string, shape: Shape): Promise<Send> {
  const json = shape === 'batch' ? () => `[${Array.from({ length: BATCH }, newEvent).join(',')}]` : newEvent
  const type = shape === 'batch' ? 'application/cloudevents-batch+json' : 'application/cloudevents+json'
  return post(`${http}/ce/queue/send?channel=${CHANNEL}`, json, { 'Content-Type': type })
}

/** Returns a sender of prepared bytes, once for a single message or 100 times for a batch. */
function sender(stack: AsyncDisposableStack, socket: AcknowledgedSocket, message: string | Buffer, shape: Shape): Send {
  stack.defer(() => socket.close())
  const count = shape === 'batch' ? BATCH : 1
  const bytes = Buffer.concat(Array.from({ length: count }, () => Buffer.from(message)))
  return () => socket.send(bytes, count)
}

async function redisWay(context: BenchContext, stack: AsyncDisposableStack): Promise<Way | undefined> {
  const redis = findRedis()
  if (redis === undefined) return missing(context, 'Redis')
  const { port, cpuMicros } = stack.use(await startRedis(context, redis))
  const control = await openRedis(port)
  stack.defer(() => control.close())
  const message = redisCommand('XADD', CHANNEL, '*', 'body', BODY)
  return {
    name: `Redis Streams ${redis.version}`,
    shapes: BOTH,
    cpuMicros,
    open: async (shape) => sender(stack, await openRedis(port), message, shape),
    clear: () => control.send(redisCommand('DEL', CHANNEL), 1),
  }
}

async function rabbitWay(context: BenchContext, stack: AsyncDisposableStack): Promise<Way | undefined> {
  const rabbit = findRabbit()
  if (rabbit === undefined) return missing(context, 'RabbitMQ')
  const { port, cpuMicros } = stack.use(await startRabbit(context, rabbit))
  const control = await openRabbit(port, CHANNEL)
  stack.defer(() => control.close())
  const message = rabbitMessage(CHANNEL, Buffer.from(BODY))
  return {
    name: `RabbitMQ ${rabbit.version}`,
    shapes: BOTH,
    cpuMicros,
    open: async (shape) => sender(stack, await openRabbit(port, CHANNEL), message, shape),
    clear: () => control.send(rabbitPurge(CHANNEL), 1),
  }
}

async function natsWay(context: BenchContext, stack: AsyncDisposableStack): Promise<Way | undefined> {
  const nats = findNats()
  if (nats === undefined) return missing(context, 'nats-server')
  const { url, port, syncs, cpuMicros } = stack.use(await startNats(context, nats))
  const connection = await connectNats({ servers: url })
  stack.defer(() => connection.close())
  const { streams } = await jetstreamManager(connection)
  await streams.add({ name: 'bench', subjects: [CHANNEL], retention: 'workqueue' })
  let inboxes = 0
  return {
    name: `JetStream ${nats.version}${syncs ? '' : ' (does not sync first)'}`,
    shapes: BOTH,
    cpuMicros,
    open: async (shape) => {
      const inbox = `_INBOX.bench.${++inboxes}`
      const message = `PUB ${CHANNEL} ${inbox} ${BODY.length}\r\n${BODY}\r\n`
      return sender(stack, await openNats(port, inbox), message, shape)
    },
    clear: () => streams.purge('bench'),
  }
}

function missing({ log }: BenchContext, name: string): undefined {
  log(`   left out: ${name} is not installed`)
}
