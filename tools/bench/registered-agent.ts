import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { connect } from 'node:net'

import { postBytes } from '@signalbox/testkit/http-connection'
import { askJson } from '@signalbox/testkit/loopback'
import type { MeasuredProcess } from '@signalbox/testkit/measured-process'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'

import { startAgent, startServer } from './processes.ts'
import type { BenchContext, Run } from './row.ts'
import type { Subject } from './subject.ts'
import type { Emission } from './workers/agent.ts'

/** The JSON-RPC text of a call to an agent. */
export function agentCall(method: 'message/send' | 'message/stream'): string {
  const parts = [{ kind: 'text', text: 'a'.repeat(256) }]
  return JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method,
    params: { message: { kind: 'message', role: 'user', messageId: 'm', parts } },
  })
}

/** A call as an official client makes it. */
export interface NativeCall {
  readonly json: string
  readonly headers: Readonly<Record<string, string>>
}

/** Returns a call in A2A 1.0 or 0.3, with the header that the product's own dialect does not have. */
export function nativeCall(version: '1.0' | '0.3', operation: 'send' | 'stream'): NativeCall {
  const headers = { 'A2A-Version': version }
  if (version === '0.3') return { json: agentCall(`message/${operation}`), headers }
  const message = { role: 'ROLE_USER', messageId: 'm', parts: [{ text: 'a'.repeat(256) }] }
  const method = operation === 'send' ? 'SendMessage' : 'SendStreamingMessage'
  return { json: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { message } }), headers }
}

/** The options of a registration whose agent speaks A2A 1.0. */
export const SPEAKS_10 = { a2a: { wire: '1.0' } }

/**
 * Starts an agent off the measured core and registers it at the subject's server as `bench`; resolves with both, and
 * its address at the server.
 */
export async function startWithAgent(
  context: BenchContext,
  subject: Subject,
  stack: AsyncDisposableStack,
  options: Parameters<typeof startServer>[2] = {},
  card: object = {},
): Promise<{ agent: MeasuredProcess; agentUrl: string; server: SignalboxServer; url: string }> {
  const { process: agent, url: agentUrl } = await startAgent()
  stack.use(agent)
  const env = { CONNECTORSA2_A_AGENT_MAX_CONCURRENCY: '100000', ...options.env }
  const server = stack.use(await startServer(context, subject, { ...options, env }))
  await askJson(`${server.http}/agents/register`, {
    body: { ...card, agent_id: 'bench', name: 'Bench', url: agentUrl },
  })
  return { agent, agentUrl, server, url: `${server.http}/a2a/bench` }
}

/** A text in a request that each copy has another number in place of. */
export const NUMBER = '#########'

/** Returns a function that returns a request again, with the next number in it. */
export function numbered(request: Buffer): () => Buffer {
  const at = request.indexOf(NUMBER)
  let next = 0
  return () => {
    if (at === -1) return request
    const copy = Buffer.from(request)
    copy.write(String(++next).padStart(NUMBER.length, '0'), at, 'latin1')
    return copy
  }
}

export const STREAMS = 50
export const PER_SECOND = 100

interface Relay {
  /** The measured process, which relays. */
  readonly between: MeasuredProcess
  readonly agent: MeasuredProcess
  readonly url: string
}

/**
 * Streams from an agent through the measured process; each run sends events on all of them and waits until all have
 * arrived.
 */
export async function relayed(
  context: BenchContext,
  stack: AsyncDisposableStack,
  { between, agent, url }: Relay,
  { json, headers }: NativeCall,
  perSecond = PER_SECOND,
): Promise<Run<{ readonly 'CPU µs/event': number }>> {
  const request = numbered(postBytes(url, json, headers))
  const readers = stack.use(await SseReaders.open({ url, count: STREAMS, request, mark: 'data: {' }))
  const emission: Emission = {
    events: Math.ceil((context.roundMs / 1000) * perSecond),
    perSecond,
    bytes: 512,
  }
  const events = emission.events * STREAMS
  const run = async () => {
    const all = readers.receive(events)
    const before = await between.cpuMicros()
    await agent.call('emit', emission)
    await all
    return { 'CPU µs/event': ((await between.cpuMicros()) - before) / events }
  }
  await run()
  return run
}

interface SseReadersOptions {
  readonly url: string
  readonly count: number
  /** The request that each reader sends, as bytes, or a function that returns the next reader's. */
  readonly request: Buffer | (() => Buffer)
  /** A text that every event contains once. */
  readonly mark: string
}

/** Readers of event streams over bare sockets that only count events. */
export class SseReaders implements Disposable {
  readonly #mark: Buffer
  readonly #sockets: Socket[] = []
  #received = 0
  #target = Number.POSITIVE_INFINITY
  #reached: () => void = () => {}

  private constructor(mark: string) {
    this.#mark = Buffer.from(mark)
  }

  /** Resolves when each stream has begun. */
  static async open({ url, count, request, mark }: SseReadersOptions): Promise<SseReaders> {
    const readers = new SseReaders(mark)
    // Opens connections in batches, so that the listener's backlog does not overflow.
    for (let open = 0; open < count; open += 100) {
      await Promise.all(
        Array.from({ length: Math.min(100, count - open) }, () =>
          readers.#open(url, typeof request === 'function' ? request() : request),
        ),
      )
    }
    return readers
  }

  /** Resolves when all readers together have received this many more events. */
  receive(events: number): Promise<void> {
    return new Promise((resolve) => {
      this.#target = this.#received + events
      this.#reached = resolve
    })
  }

  async #open(url: string, request: Buffer): Promise<void> {
    const { hostname, port } = new URL(url)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const socket = connect(Number(port), hostname, () => socket.write(request))
    this.#sockets.push(socket)
    socket.on('error', reject)
    socket.once('close', () => reject(new Error('the server closed a stream')))
    socket.once('data', (head: Buffer) => {
      const text = head.toString('latin1')
      if (text.startsWith('HTTP/1.1 200') && /\r\ncontent-type: text\/event-stream/i.test(text)) resolve()
      else reject(new Error(`not a stream:\n${text.slice(0, 500)}`))
    })
    // A chunk can end inside an event's mark, so a possible beginning of one waits for the next chunk.
    let rest: Buffer = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      const bytes = rest.byteLength === 0 ? chunk : Buffer.concat([rest, chunk])
      let from = 0
      for (let at = bytes.indexOf(this.#mark); at !== -1; at = bytes.indexOf(this.#mark, from)) {
        from = at + this.#mark.byteLength
        this.#received++
      }
      rest = bytes.subarray(Math.max(from, bytes.byteLength - this.#mark.byteLength + 1))
      if (this.#received >= this.#target) this.#reached()
    })
    await promise
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}
