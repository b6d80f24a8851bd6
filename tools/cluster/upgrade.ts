import { setTimeout as pause } from 'node:timers/promises'

import { NatsServer } from '@signalbox/engine-nats/testing'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { eventually } from '@signalbox/testkit/until'

import { checkOut, WORKING_TREE } from '../bench/subject.ts'
import type { SignalboxServer } from '../harness/signalbox-server.ts'
import { startSignalbox } from '../harness/signalbox-server.ts'
import { UpgradeAgent } from './upgrade-agent.ts'
import type { CallKind, Calls } from './upgrade-calls.ts'
import { callForever, openUpgradeStream } from './upgrade-calls.ts'

export interface UpgradeOptions {
  /** The commit that the nodes run before the upgrade. */
  readonly from: string
  readonly log: (line: string) => void
}

/** The view of a cluster's clients while its nodes were replaced one after the other. */
export interface UpgradeReport {
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
  const agent = stack.use(await UpgradeAgent.start())
  const start = async (root: string): Promise<SignalboxServer> => {
    // A node that stops completes the streams that it serves for clients of other nodes, if it has the time.
    const env = { ENGINE: 'nats', NATS_SERVERS: nats.url, SHUTDOWN_SECONDS: '2' }
    return stack.use(await startSignalbox({ root, storePath: '/nonexistent', instrumented: false, env }))
  }
  const [one, two] = await Promise.all([start(old.root), start(old.root)])
  for (const version of ['dialect', 'native'] as const) await registerAgent(one.http, version, agent.url)
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
  const response = await fetch(`${base}/agents/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      agent_id: version,
      name: version,
      url,
      capabilities: { streaming: true },
      ...(version === 'native' && { supportedInterfaces }),
    }),
  })
  if (!response.ok) throw new Error(`the agent was not registered: ${response.status} ${await response.text()}`)
}

/** Resolves when a node knows both agents. */
function known(base: string): Promise<void> {
  return eventually(async () => {
    const cards = (await (await fetch(`${base}/agents`)).json()) as readonly unknown[]
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
