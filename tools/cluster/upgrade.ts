import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'

import { NatsServer } from '@signalbox/engine-nats/testing'
import { EventStream } from '@signalbox/testkit/event-stream'
import { askJson, serveHttp } from '@signalbox/testkit/loopback'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { startSignalbox } from '@signalbox/testkit/signalbox-server'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { eventually } from '@signalbox/testkit/until'

import { checkOut, WORKING_TREE } from '../bench/subject.ts'

interface UpgradeOptions {
  /** The commit that the nodes run before the upgrade. */
  readonly from: string
  readonly log: (line: string) => void
}

/** The view of a cluster's clients while its nodes were replaced one after the other. */
interface UpgradeReport {
  readonly calls: Readonly<Record<string, Calls>>
  /** The end of each stream that was open at a node, or served by one, when it stopped. */
  readonly streamEnds: Readonly<Record<string, string>>
  /** The message ids of requests that the agent executed, and that were refused as not executed. */
  readonly executedRefused: readonly string[]
}

/** The longest time a node needs to learn of an agent. */
const REPLICATION_MS = 10_000

/**
 * Replaces two nodes of another commit by nodes of the working tree, one after the other, with calls and streams under
 * way: those of the gateway's dialect at every node, and those of official clients at every new node.
 */
export async function upgrade({ from, log }: UpgradeOptions): Promise<UpgradeReport> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await TemporaryFolder.create('upgrade'))
  const old = stack.use(checkOut(from, folder.path))
  const nats = stack.use(await NatsServer.start())
  const agent = new UpgradeAgent()
  const { url } = stack.use(await serveHttp((request, response) => void agent.answer(request, response)))
  const start = async (root: string): Promise<SignalboxServer> => {
    // A node that stops completes the streams that it serves for clients of other nodes, if it has the time.
    const env = { ENGINE: 'nats', NATS_SERVERS: nats.url, SHUTDOWN_SECONDS: '2' }
    return stack.use(await startSignalbox({ root, storePath: '/nonexistent', instrumented: false, env }))
  }
  const [one, two] = await Promise.all([start(old.root), start(old.root)])
  for (const version of ['dialect', 'native'] as const) await registerAgent(one.http, version, `${url}/`)
  await known(two.http)

  const calls: Record<string, Calls> = {}
  const streamEnds: Record<string, string> = {}
  const load = async (name: string, kind: CallKind, node: SignalboxServer, work: () => Promise<void>) => {
    const stopping = new AbortController()
    const made = callForever(kind, `${node.http}/a2a/${kind}`, stopping.signal)
    await work()
    stopping.abort()
    calls[name] = await made
  }

  log(`two nodes of ${old.label}; the second one is replaced`)
  let three = one
  const before = await openUpgradeStream('dialect', `${two.http}/a2a/dialect`)
  await load('dialect at an old node, while an old node stops and a new one starts', 'dialect', one, async () => {
    await two.process.stop()
    three = await start(WORKING_TREE.root)
    await known(three.http)
  })
  streamEnds['dialect at an old node that stopped'] = await before.ended()

  log('one old node and one new one')
  await load('dialect at the old node of a mixed cluster', 'dialect', one, () => pause(500))
  await load('dialect at the new node of a mixed cluster', 'dialect', three, () => pause(500))
  await load('official calls at the new node of a mixed cluster', 'native', three, () => pause(500))
  const across = await Promise.all([
    openUpgradeStream('dialect', `${one.http}/a2a/dialect`),
    openUpgradeStream('native', `${three.http}/a2a/native`),
  ])

  log('the last old node is replaced')
  let four = three
  await load(
    'official calls at a new node, while the last old node stops and a new one starts',
    'native',
    three,
    async () => {
      await one.process.stop()
      four = await start(WORKING_TREE.root)
      await known(four.http)
    },
  )
  streamEnds['dialect at the last old node'] = await across[0].ended()
  agent.finishStreams()
  streamEnds['official stream at a new node, while the old node stopped'] = await across[1].ended()

  log('two new nodes; the first one is replaced once more')
  await load('official calls at the second new node', 'native', four, () => pause(500))
  const last = await openUpgradeStream('native', `${three.http}/a2a/native`)
  await load('official calls at a new node, while the other one stops', 'native', four, async () => {
    await three.process.stop()
  })
  streamEnds['official stream at a new node that stopped'] = await last.ended()
  const refused = Object.values(calls).flatMap(({ refused }) => refused)
  return { calls, streamEnds, executedRefused: refused.filter((messageId) => agent.executed.has(messageId)) }
}

async function registerAgent(base: string, version: 'dialect' | 'native', url: string): Promise<void> {
  const protocolVersion = '1.0'
  const supportedInterfaces = [{ url, protocolBinding: 'JSONRPC', protocolVersion }]
  const card = { agent_id: version, name: version, url, capabilities: { streaming: true } }
  await askJson(`${base}/agents/register`, {
    body: { ...card, ...(version === 'native' && { supportedInterfaces }) },
  })
}

/** Resolves when a node knows both agents. */
function known(base: string): Promise<void> {
  return eventually(async () => {
    const cards = (await askJson(`${base}/agents`)) as readonly unknown[]
    if (cards.length !== 2) throw new Error(`the node knows ${cards.length} agents instead of 2`)
  }, REPLICATION_MS)
}

/** Returns what must not happen in an upgrade. */
export function upgradeFaults({ calls, streamEnds, executedRefused }: UpgradeReport): readonly string[] {
  const faults = executedRefused.map((id) => `${id} was executed, and it was refused as not executed`)
  for (const [name, { answered, refused, failed }] of Object.entries(calls)) {
    if (answered === 0) faults.push(`${name}: no call was answered`)
    if (refused.length > 0 || failed.length > 0) faults.push(`${name}: ${[...new Set(failed)].join('; ')}`)
  }
  for (const [name, end] of Object.entries(streamEnds)) {
    if (!/^(completed|error -?\d+)/.test(end)) faults.push(`${name}: the stream ended with ${end}`)
  }
  return faults
}

/** Calls of the gateway's own dialect, or calls as official clients make them in A2A 1.0. */
type CallKind = 'dialect' | 'native'

/** The outcomes of calls that were made one after the other. */
interface Calls {
  readonly answered: number
  /** The message ids of calls that were refused as not executed. */
  readonly refused: readonly string[]
  /** The text of each error and of each answer that was not the agent's. */
  readonly failed: readonly string[]
}

let messages = 0

function request(kind: CallKind, streams: boolean): { readonly messageId: string; readonly body: string } {
  const messageId = `m-${++messages}`
  const message =
    kind === 'native'
      ? { messageId, role: 'ROLE_USER', parts: [{ text: 'hello' }] }
      : { kind: 'message', messageId, role: 'user', parts: [{ kind: 'text', text: 'hello' }] }
  const methods = { dialect: ['message/send', 'message/stream'], native: ['SendMessage', 'SendStreamingMessage'] }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: methods[kind][streams ? 1 : 0], params: { message } })
  return { messageId, body }
}

function headersOf(kind: CallKind): Record<string, string> {
  return kind === 'native' ? { 'a2a-version': '1.0' } : {}
}

/** Calls an agent again and again until the signal. */
async function callForever(kind: CallKind, url: string, signal: AbortSignal): Promise<Calls> {
  const refused: string[] = []
  const failed: string[] = []
  let answered = 0
  while (!signal.aborted) {
    const { messageId, body } = request(kind, false)
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headersOf(kind) },
        body,
      })
      const text = await response.text()
      if (text.includes(messageId)) {
        answered++
      } else {
        failed.push(text)
        if (text.includes('"executed":"false"')) refused.push(messageId)
      }
    } catch (error) {
      failed.push(String(error))
    }
    await pause(5)
  }
  return { answered, refused, failed }
}

/** A stream of an agent. */
interface UpgradeStream {
  /** Resolves when the stream is closed, with its last event: `completed`, `error` with its code, or `cut off`. */
  readonly ended: () => Promise<string>
}

/** Opens a stream of an agent; resolves when it has its first event. */
async function openUpgradeStream(kind: CallKind, url: string): Promise<UpgradeStream> {
  let last = ''
  const first = Promise.withResolvers<void>()
  const { body } = request(kind, true)
  const stream = await EventStream.open(url, {
    method: 'POST',
    headers: headersOf(kind),
    body,
    headMs: 10_000,
    onEvent: ({ data }) => {
      last = data
      first.resolve()
    },
  })
  await first.promise
  return {
    ended: async () => {
      await stream.closed
      if (/completed/i.test(last)) return 'completed'
      const [, code] = /"code":(-\d+)/.exec(last) ?? []
      return code === undefined ? `cut off after ${last}` : `error ${code}`
    },
  }
}

interface Body {
  readonly id?: unknown
  readonly method: string
  readonly params?: { readonly message?: { readonly messageId?: string } }
}

/** The statuses of the agent's task, in A2A 0.3 and in 1.0. */
const SAYS = {
  dialect: {
    working: { kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'working' }, final: false },
    completed: { kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'completed' }, final: true },
  },
  native: {
    working: { statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } },
    completed: { statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } } },
  },
}

/** An agent for both versions of A2A: it echoes the id of a message, and streams stay open until they are finished. */
class UpgradeAgent {
  /** The ids of the messages that it executed. */
  readonly executed = new Set<string>()
  readonly #streams = new Map<ServerResponse, string>()

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {})
    const { id, method, params } = JSON.parse(await text(request)) as Body
    const messageId = params?.message?.messageId ?? ''
    this.executed.add(messageId)
    const version = method.includes('/') ? 'dialect' : 'native'
    const rpc = (result: object): string => JSON.stringify({ jsonrpc: '2.0', id, result })
    if (id === undefined) {
      response.writeHead(204).end()
    } else if (method === 'message/stream' || method === 'SendStreamingMessage') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${rpc(SAYS[version].working)}\n\n`)
      this.#streams.set(response, `data: ${rpc(SAYS[version].completed)}\n\n`)
      response.once('close', () => this.#streams.delete(response))
    } else {
      response.setHeader('content-type', 'application/json')
      const parts = [version === 'native' ? { text: messageId } : { kind: 'text', text: messageId }]
      const message = { messageId: 'answer', parts }
      const result =
        version === 'native'
          ? { message: { ...message, role: 'ROLE_AGENT' } }
          : { ...message, kind: 'message', role: 'agent' }
      response.end(rpc(result))
    }
  }

  /** Ends every open stream with a completed task. */
  finishStreams(): void {
    for (const [response, end] of this.#streams) response.end(end)
  }
}
