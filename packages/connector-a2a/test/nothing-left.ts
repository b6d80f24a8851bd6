import { agentChannel, LOG_CHANNEL, WIRE_CHANNEL } from '../src/requests/agent-query.ts'
import { expect, onTestFinished } from 'vitest'
import { random } from '@signalbox/testkit/random'
import { until } from '@signalbox/testkit/until'

import type { Script } from './agents.ts'
import { always, echo, hang, startAgent } from './agents.ts'
import { openGateway } from './gateway-host.ts'
import { RawConnection } from '@signalbox/testkit/raw-connection'

const STREAM = '{"jsonrpc":"2.0","id":1,"method":"message/stream"}'
const CALL = '{"jsonrpc":"2.0","id":1,"method":"m"}'
const NATIVE_CALL = '{"jsonrpc":"2.0","id":1,"method":"SendMessage"}'
const NATIVE_STREAM = '{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage"}'
const NOTE = '{"jsonrpc":"2.0","method":"m"}'

const event = 'event: task.status\ndata: {"type":"status_update","payload":{}}\n\n'

/** What agents do, well and badly. */
const SCRIPTS: readonly Script[] = [
  echo,
  echo,
  echo,
  always('not JSON'),
  always('no', 400),
  always('', 503),
  always('x'.repeat(20_000)),
  ({ socket }) => socket.destroy(),
  ({ socket }) => socket.resetAndDestroy(),
  (_asked, response) => response.writeHead(200, { 'Content-Length': 5 }).write('{', () => response.destroy()),
  (_asked, response) => response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end(event),
  (_asked, response) => response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(event),
  hang,
]

/** Resources that hold on to something, by kind. */
function resources(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

/** Makes so many good and bad calls through a gateway, and fails if they leave a subscription, a timer or a connection. */
export async function leavesNothing(calls: number): Promise<void> {
  const host = await openGateway({
    agentMaxConcurrency: 50,
    agentMaxResponseBytes: 10_000,
    timeouts: { defaultTimeoutMs: 60, maxTimeoutMs: 60 },
    maxSseIdleSeconds: 0.1,
  })
  const next = random(7)
  const warnings: Error[] = []
  const onWarning = (warning: Error): void => void warnings.push(warning)
  process.on('warning', onWarning)
  onTestFinished(() => void process.off('warning', onWarning))
  const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)] as T
  const agent = await startAgent((asked, response, request) => void pick(SCRIPTS)(asked, response, request))
  await host.register('mixed', agent.url)
  await host.register('dead', 'http://127.0.0.1:1/')
  const post = (agentId: string, body: string, signal?: AbortSignal): Promise<unknown> =>
    fetch(`${host.base}/a2a/${agentId}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      ...(signal === undefined ? {} : { signal }),
    })
      .then((response) => response.text())
      .catch(() => {})
  let briefs = 0
  const acts: readonly (() => Promise<unknown>)[] = [
    () => post('mixed', CALL),
    () => post('mixed', CALL),
    () => post('mixed', NOTE),
    () => post('mixed', STREAM),
    () => post('mixed', NATIVE_CALL),
    () => post('mixed', NATIVE_STREAM),
    () => post('mixed', NATIVE_STREAM, AbortSignal.timeout(20)),
    () => post('dead', CALL),
    () => post('nobody', CALL),
    () => post('mixed', '{'),
    () => post('mixed', CALL, AbortSignal.timeout(5)),
    () => post('mixed', STREAM, AbortSignal.timeout(20)),
    async () => {
      const connection = await RawConnection.open(host.port)
      connection.post('/a2a/mixed', pick([CALL, STREAM, NOTE]))
      connection.socket.end()
    },
    async () => {
      const id = `brief-${briefs++}`
      await host.register(id, agent.url)
      await Promise.all([post(id, CALL), host.deregister(id)])
    },
  ]
  const round = async (calls: number): Promise<void> => {
    const client = async (): Promise<void> => {
      for (let i = 0; i < calls / 32; i++) await pick(acts)()
    }
    await Promise.all(Array.from({ length: 32 }, client))
    const ids = ['mixed', 'dead', ...Array.from({ length: briefs }, (_, i) => `brief-${i}`)]
    await until(() => ids.every((id) => host.connector.inFlight(id) === 0) && host.connector.openStreams() === 0)
    // Idle connections to agents close by themselves.
    await until(async () => (await agent.connections()) === 0)
  }
  const subscribed = async (type: 'events' | 'queries') =>
    (await host.engine.channels.list(type)).filter(({ subscribers }) => subscribers > 0).map(({ name }) => name)
  await round(200)
  const before = resources()
  await round(calls)
  // Those of agents that went linger a little.
  await expect
    .poll(() => subscribed('queries'), { timeout: 60_000 })
    .toEqual([WIRE_CHANNEL, LOG_CHANNEL, agentChannel('dead'), agentChannel('mixed')])
  await expect.poll(() => subscribed('events')).toEqual([])
  // Not with `expect.poll`, which has a timer of its own.
  const more = (name: string): number => (resources()[name] ?? 0) - (before[name] ?? 0)
  await until(() => more('Timeout') <= 2)
  // Those of `fetch` to the gateway stay open; those to the agent are gone.
  await until(() => more('TCPSocketWrap') <= 40)
  expect(host.failures).toEqual([])
  // Such as that of too many listeners.
  expect(warnings).toEqual([])
  await host.close()
  await until(() => (resources()['TCPServerWrap'] ?? 0) < (before['TCPServerWrap'] ?? 0))
}
