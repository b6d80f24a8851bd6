import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request as httpRequest } from 'node:http'
import { fileURLToPath } from 'node:url'

import { commandLine, conclude, number, print } from '@signalbox/testkit/command-line'
import { askJson } from '@signalbox/testkit/loopback'
import { MeasuredProcess } from '@signalbox/testkit/measured-process'
import { scrape, total } from '@signalbox/testkit/prometheus'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { startSignalbox } from '@signalbox/testkit/signalbox-server'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import type { Order } from './agent.ts'

const MIB = 1_048_576
const EVENT_BYTES = 65_536
/** The allowed growth of either process while the client is slow, in MiB. */
const GROWTH_MIB = 32
/** The allowed memory of an idle stream, both sides, in KiB. */
const IDLE_KIB = 70
/** The time within which streams of disconnected clients must be released, in milliseconds. */
const GONE_MS = 2_000
const TICK_MS = 50
const WARM_UP: Order = { events: 500, bytes: EVENT_BYTES }

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const problems: string[] = []

/** Returns the resident memory of a process, in MiB, as the kernel counts it. */
function residentMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
}

function openStream(server: SignalboxServer, text: string): Promise<IncomingMessage> {
  const params = { message: { kind: 'message', role: 'user', messageId: 'm', parts: [{ kind: 'text', text }] } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params })
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const outgoing = httpRequest(`${server.http}/a2a/soak`, { method: 'POST', agent: false, headers }, (response) => {
      response.on('error', () => {})
      if (response.headers['content-type'] === 'text/event-stream') resolve(response)
      else reject(new Error(`not a stream: ${response.statusCode}`))
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** Counts events, and checks their order and their single end. */
class Counter {
  #rest = ''
  events = 0
  bytes = 0
  ends = 0
  disorder = 0

  take(chunk: Buffer): void {
    this.bytes += chunk.length
    const blocks = (this.#rest + chunk.toString('latin1')).split('\n\n')
    this.#rest = blocks.pop() ?? ''
    for (const block of blocks) {
      if (block.startsWith(':')) continue
      if (!block.startsWith('event: task.artifact')) {
        if (block.startsWith('event: task.done')) this.ends++
        else this.disorder++
        continue
      }
      if (!block.includes(`"payload":{"n":${this.events},`) || this.ends > 0) this.disorder++
      this.events++
    }
  }
}

/** Reads at a limited rate for a limited time, and then the rest at full speed. */
async function readAt(
  response: IncomingMessage,
  bytesPerSecond: number,
  seconds: number,
  counter: Counter,
  onTick: () => void,
): Promise<void> {
  const ended = new Promise<void>((resolve) => response.once('close', () => resolve()))
  const begin = performance.now()
  let allowed = 0
  response.on('readable', () => {})
  for (let last = begin; !response.destroyed && performance.now() - begin < seconds * 1000;) {
    await pause(TICK_MS)
    const now = performance.now()
    allowed = Math.min(allowed + ((now - last) / 1000) * bytesPerSecond, bytesPerSecond)
    last = now
    while (allowed >= 1 && response.readableLength > 0) {
      const chunk = response.read(Math.min(Math.floor(allowed), response.readableLength)) as Buffer | null
      if (chunk === null) break
      allowed -= chunk.length
      counter.take(chunk)
    }
    if (response.readableLength === 0) response.read(0)
    onTick()
  }
  response.removeAllListeners('readable')
  response.on('data', (chunk: Buffer) => counter.take(chunk))
  response.resume()
  await ended
}

/** Runs an agent that sends far more than its client reads. */
async function slowClient(
  server: SignalboxServer,
  agent: MeasuredProcess,
  mebibytes: number,
  rate: number,
  seconds: number,
) {
  const warm = new Counter()
  await readAt(await openStream(server, JSON.stringify(WARM_UP)), 0, 0, warm, () => {})
  await server.process.rssBytes()
  await pause(1_000)
  const events = Math.round((mebibytes * MIB) / EVENT_BYTES)
  const before = { server: residentMib(server.process.pid), agent: residentMib(agent.pid) }
  const most = { ...before }
  const counter = new Counter()
  const alreadyPushed = await agent.call<number>('pushedBytes')
  let ahead = 0
  let ticks = 0
  await readAt(
    await openStream(server, JSON.stringify({ events, bytes: EVENT_BYTES })),
    rate * MIB,
    seconds,
    counter,
    () => {
      most.server = Math.max(most.server, residentMib(server.process.pid))
      most.agent = Math.max(most.agent, residentMib(agent.pid))
      if (++ticks % 20 !== 0) return
      void agent
        .call<number>('pushedBytes')
        .then((pushed) => (ahead = Math.max(ahead, pushed - alreadyPushed - counter.bytes)))
      if (ticks % 600 === 0) print(`  … ${(counter.bytes / MIB).toFixed(0)} MiB read`)
    },
  )
  const grown = { server: most.server - before.server, agent: most.agent - before.agent }
  print(
    `${mebibytes} MiB pushed at a reader of ${rate} MiB/s (${Number.isFinite(seconds) ? `for ${seconds} s` : 'to the end'}):`,
  )
  print(
    `  server ${before.server.toFixed(0)} MiB, grew by ${grown.server.toFixed(1)}; agent ${before.agent.toFixed(0)} MiB, grew by ${grown.agent.toFixed(1)}`,
  )
  print(
    `  the agent was ahead of the reader by ${(ahead / MIB).toFixed(1)} MiB at the most; ${counter.events} of ${events} events, ${counter.ends} end`,
  )
  if (grown.server > GROWTH_MIB || grown.agent > GROWTH_MIB) problems.push('memory grew')
  if (counter.events !== events || counter.ends !== 1 || counter.disorder > 0)
    problems.push('events lost, duplicated or out of order')
}

/** Opens idle streams and disconnects half of their clients. */
async function idleStreams(server: SignalboxServer, agent: MeasuredProcess, count: number): Promise<void> {
  const open = async (streams: number): Promise<IncomingMessage[]> => {
    const opened: IncomingMessage[] = []
    while (opened.length < streams) {
      const wave = Array.from({ length: Math.min(50, streams - opened.length) }, () => openStream(server, 'wait'))
      opened.push(...(await Promise.all(wave)))
    }
    for (const response of opened) response.resume()
    return opened
  }
  const gauge = async () => total(await scrape(server.api), 'broker_a2a_sse_streams_active')
  const leftWithin = async (streams: number): Promise<number> => {
    const begin = performance.now()
    for (;;) {
      const [active, upstream] = [await gauge(), await agent.call<number>('openStreams')]
      const taken = performance.now() - begin
      if ((active === streams && upstream === streams) || taken > 5 * GONE_MS) return taken
      await pause(10)
    }
  }
  for (const response of await open(200)) response.destroy()
  await leftWithin(0)
  const cancelledBefore = (await agent.call<string[]>('cancelled')).length
  const before = await server.process.rssBytes()
  const streams = await open(count)
  const kib = ((await server.process.rssBytes()) - before) / count / 1024
  const cut = Math.floor(count / 2)
  for (const response of streams.slice(0, cut)) response.destroy()
  const taken = await leftWithin(count - cut)
  await pause(500)
  const cancels = (await agent.call<string[]>('cancelled')).length - cancelledBefore
  print(`${count} idle streams: ${kib.toFixed(1)} KiB each, both sides`)
  print(`${cut} clients cut: gauge and the agent's streams back after ${taken.toFixed(0)} ms, ${cancels} stream_cancel`)
  if (kib > IDLE_KIB) problems.push('idle streams are too large')
  if (taken > GONE_MS) problems.push('streams were not released')
  if (cancels !== cut) problems.push('the agent did not get one notification for each cancelled stream')
  for (const response of streams) response.destroy()
  await leftWithin(0)
}

/** Streams from agents to clients that are slow, idle or gone. */
export async function main(args: string[]): Promise<void> {
  const { values } = commandLine(
    {
      usage: 'npm run soak -- agent-streams [options]',
      about: `Agents' streams through the real server: an agent that sends far more than its client reads, many idle streams, and
clients that disconnect. Exits with 1 if memory grew, an event was lost, or a stream was not released.`,
    },
    {
      mebibytes: number('N', 'MiB that the agent sends', 640),
      rate: number('N', 'MiB a second that the client reads', 1),
      seconds: number('N', 'duration of reading at that rate; then it reads at full speed', Number.POSITIVE_INFINITY),
      streams: number('N', 'idle streams, half of whose clients are cut', 1000),
    },
    args,
  )
  await using folder = await TemporaryFolder.create('agent-streams')
  await using agent = new MeasuredProcess({ script: fileURLToPath(new URL('agent.ts', import.meta.url)) })
  const url = await agent.line((line) => /^listening on (\S+)$/.exec(line)?.[1])
  const env = { CONNECTORSA2_A_AGENT_MAX_CONCURRENCY: '100000', NODE_OPTIONS: '--expose-gc' }
  await using server = await startSignalbox({ storePath: folder.join('store'), env })
  await askJson(`${server.http}/agents/register`, { body: { agent_id: 'soak', name: 'Soak', url } })
  await idleStreams(server, agent, values.streams)
  await slowClient(server, agent, values.mebibytes, values.rate, values.seconds)
  conclude(problems)
}
