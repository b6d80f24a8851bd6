import { Random } from '@signalbox/testkit/random'
import { expect, test } from 'vitest'

import type { Disaster } from '../cluster/disasters.ts'
import { describe, kindOf, randomDisaster } from '../cluster/disasters.ts'
import { RecoveryWatch } from '../cluster/recovery-watch.ts'
import { breaches, summary } from '../cluster/report.ts'
import { Ledger, WriterOrder } from '../load/ledgers.ts'
import { StreamEvents } from '../load/mixed/agent-streams.ts'
import type { Scene } from '../load/mixed/clients.ts'
import { Clients, Refused, Periods } from '../load/mixed/clients.ts'

function scene(): Scene {
  return { front: '', watch: new RecoveryWatch(), frozenNodes: new Periods(), struckServers: new Periods() }
}

const artifact = (n: number) => ({ event: 'task.artifact', data: `{"payload":{"n":${n}}}` })
const done = { event: 'task.done', data: '{"payload":{}}' }

function disastersOf(seed: number): readonly Disaster[] {
  const random = new Random(seed)
  return Array.from({ length: 200 }, () => randomDisaster(random))
}

test('chaos - the same seed gives the same disasters, which never take a majority of the nats-servers', () => {
  const disasters = disastersOf(7)
  expect(disastersOf(7).map(describe)).toEqual(disasters.map(describe))
  for (const { blows } of disasters) {
    expect(blows.filter(({ target }) => target === 'nats').length).toBeLessThanOrEqual(1)
    expect(blows.filter(({ target }) => target === 'node').length).toBeLessThanOrEqual(1)
  }
  expect(new Set(disasters.map(kindOf)).size).toBe(8)
})

test('chaos - a stream without fault breaks nothing', () => {
  const ledger = new Ledger('stream')
  const events = new StreamEvents(ledger, 2)
  for (const event of [artifact(0), artifact(1), done]) events.take(event)
  expect([events.end, ledger.examples]).toEqual(['done', []])
})

test('chaos - events of a stream that are missing, come twice or come behind the end are found', () => {
  const ledger = new Ledger('stream')
  const gap = new StreamEvents(ledger, 4)
  for (const event of [artifact(0), artifact(2), artifact(2), done, artifact(3)]) gap.take(event)
  expect(['lost', 'doubled', 'outOfOrder'].map((breach) => ledger.count(breach as 'lost'))).toEqual([2, 1, 1])
})

test('chaos - a stream that fails may end anywhere', () => {
  const ledger = new Ledger('stream')
  const events = new StreamEvents(ledger, 10)
  events.take(artifact(0))
  events.take({ event: 'task.error', data: '{"payload":{"code":-32603,"message":"stream interrupted"}}' })
  expect([events.end, events.reason, ledger.examples]).toEqual(['error', '-32603 stream interrupted', []])
})

test('chaos - a writer whose entries change places is found, and other writers may come between', () => {
  const order = new WriterOrder()
  for (const [i, body] of ['a#0', 'b#0', 'a#1', 'b#2', 'b#1'].entries()) order.take(i + 1, body)
  order.take(3, 'a#1')
  expect(order.problems).toEqual(['b#1 at 5 comes after b#2 at 4'])
})

test('chaos - the outcomes of a call are distinguished: done, refused, refused without a reason, and no answer', async () => {
  const ledger = new Ledger('call')
  const clients = new Clients(ledger, scene())
  await clients.once('c', () => Promise.resolve())
  await clients.once('c', () => Promise.reject(new Refused('ENGINE_UNAVAILABLE', 'the servers do not answer')))
  await clients.once('c', () => Promise.reject(new Refused('INTERNAL', 'internal error')))
  await clients.once('c', () => Promise.reject(new Error('the connection is closed')))
  const { attempted, acknowledged, refused, unknown } = ledger
  expect([attempted, acknowledged, refused, unknown, ledger.count('unclear')]).toEqual([4, 1, 2, 1, 1])
})

test('chaos - silence beyond its bound is found, and the time in which a node was frozen does not count', () => {
  const ledger = new Ledger('call')
  const place = scene()
  const clients = new Clients(ledger, place)
  const now = performance.now()
  clients.checkBound('c', now - 20_000, 20_000)
  expect(ledger.count('hung')).toBe(0)
  clients.checkBound('c', now - 40_000, 20_000)
  expect(ledger.count('hung')).toBe(1)
  place.frozenNodes.begin(now - 60_000)
  place.frozenNodes.end(now - 20_000)
  clients.checkBound('c', now - 40_000, 20_000)
  expect(ledger.count('hung')).toBe(1)
})

test('chaos - periods count where they overlap a span of time', () => {
  const periods = new Periods()
  periods.begin(100)
  periods.end(200)
  periods.begin(300)
  expect([periods.overlapMs(0, 50), periods.overlapMs(0, 150), periods.overlapMs(150, 400)]).toEqual([0, 50, 150])
})

test('chaos - a kind of load has recovered when every client of it succeeded with a call begun after the disaster', async () => {
  const watch = new RecoveryWatch()
  watch.join('send', 'one')
  watch.join('send', 'two')
  watch.join('read', 'three')
  const before = performance.now()
  watch.begin()
  watch.succeeded('send', 'one', before)
  watch.end()
  watch.succeeded('send', 'one', performance.now())
  watch.succeeded('send', 'two', before)
  watch.succeeded('read', 'three', performance.now())
  const early = await watch.recovered(20)
  expect([...early.recoveries.keys()]).toEqual(['read'])
  expect(early.missing).toEqual(['send two'])
})

test('chaos - a run that breaks a promise reports it', () => {
  const ledger = new Ledger('queue send')
  ledger.add('lost', 'm1, m2', 2)
  const report = {
    ledgers: [ledger],
    rounds: [
      {
        kind: 'kill nats',
        recoveries: new Map([['queue send', { outageMs: 100, everyoneMs: 200 }]]),
        itselfMs: 300,
        inStepMs: 400,
        problems: [],
        again: 0,
      },
    ],
    streamEnds: { done: 1, error: 0, closed: 0, hung: 0 },
    seconds: 1,
    problems: [],
  }
  expect(breaches(report)).toEqual(['queue send, lost: m1, m2'])
  expect(summary(report)).toMatch(
    /^kill nats +1 +0\.1 \/ 0\.1 \/ 0\.1 +0\.2 \/ 0\.2 \/ 0\.2 +0\.3 \/ 0\.3 \/ 0\.3 +0\.4 \/ 0\.4 \/ 0\.4$/m,
  )
  expect(summary(report)).toContain('1 promises were broken')
})
