import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import type { AgentCard } from '@signalbox/registry'
import { expect, onTestFinished, test } from 'vitest'

import { a2aConnector } from '../src/index.ts'
import { resolveLimits } from '../src/stream/limits.ts'
import { StreamTimer } from '../src/stream/stream-timer.ts'
import { openGateway } from './gateway-host.ts'

/** A card that cannot be printed. */
const UNPRINTABLE: AgentCard = {
  agent_id: 'a1',
  name: 'A',
  url: 'http://127.0.0.1:1/',
  protocolVersions: [],
  registered_by: 'me',
  registered_at: '',
  last_seen: '',
  capabilities: {
    toJSON() {
      throw new Error('unprintable')
    },
  },
}

test('gateway - a card that cannot be shown, now or later, is a closed connection and a log line', async () => {
  const { broker, system, requests, registry } = await openGateway()
  const failures: unknown[] = []
  const found = {
    authorization: registry.authorization,
    list: () => [],
    onChange: () => () => {},
    get: (agentId: string) => (agentId === 'a1' ? UNPRINTABLE : undefined),
    find: async (agentId: string) => (agentId === 'later' ? UNPRINTABLE : registry.find(agentId)),
  }
  const hooks = { failed: (error: unknown) => void failures.push(error) }
  const connector = a2aConnector({ broker, system, requests, registry: found }, { hooks })
  const server = createServer(connector.handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    await connector.close(0)
    server.close()
    server.closeAllConnections()
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a2a`
  for (const agentId of ['a1', 'later']) {
    await expect(fetch(`${base}/${agentId}/.well-known/agent-card.json`)).rejects.toThrow('fetch failed')
  }
  expect(failures).toEqual([new Error('unprintable'), new Error('unprintable')])
  expect((await fetch(`${base}/none/.well-known/agent-card.json`)).status).toBe(404)
})

test('A11 - stream timer: a stream whose tick throws gets no more ticks, the others do', async () => {
  const timer = StreamTimer.for(resolveLimits({ heartbeatMs: 50 }))
  const crashed = Promise.withResolvers<unknown>()
  let broken = 0
  const failing = {
    tick() {
      broken++
      throw new Error('a bug')
    },
    crash: (error: unknown) => crashed.resolve(error),
  }
  const twice = Promise.withResolvers<void>()
  let seen = 0
  const well = {
    tick: () => void (++seen === 3 && twice.resolve()),
    crash: (error: unknown) => twice.reject(error),
  }
  timer.add(failing)
  timer.add(well)
  await twice.promise
  timer.delete(well)
  expect([await crashed.promise, broken]).toEqual([new Error('a bug'), 1])
})
