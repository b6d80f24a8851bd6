import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Reply } from '@signalbox/broker-core'
import type { QueueSend } from '@signalbox/broker-core/engine'
import { encodeText } from '@signalbox/broker-core'
import type { NatsEngineProblem, NatsEngine } from '@signalbox/engine-nats'
import { openNatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { APP } from './support/cli.ts'
import { PATIENT } from './support/nodes.ts'
import { certificate } from './support/tls.ts'

const PAGE = readFileSync(join(APP, '..', '..', 'docs', 'guides', 'security.md'), 'utf8')
const [, CONFIG = ''] = /```\n(# nats\.conf for servers[^]*?)```/.exec(PAGE) ?? []

/** A nats-server with the configuration of the page; what only its readers have is replaced. */
async function startSecured(): Promise<NatsServer> {
  const config = CONFIG.replace('/data', JSON.stringify(testFolder()))
    .replace('/etc/nats/tls.crt', JSON.stringify(certificate('server.crt')))
    .replace('/etc/nats/tls.key', JSON.stringify(certificate('server.key')))
    .replace('$SIGNALBOX_PASSWORD', 'right')
    .replace('$OPERATOR_PASSWORD', 'other')
  const nats = await NatsServer.start({ jetstream: false, scheme: 'tls', config })
  onTestFinished(() => nats[Symbol.asyncDispose]())
  return nats
}

async function openNode(nats: NatsServer, user: string, problems: NatsEngineProblem[] = []): Promise<NatsEngine> {
  const engine = await openNatsEngine({
    servers: [nats.url.replace('tls://', `tls://${user}@`)],
    tls: { caFile: certificate('authority.crt') },
    maxMessageBytes: 1_048_576,
    onProblem: (problem) => problems.push(problem),
  })
  onTestFinished(() => engine.close())
  return engine
}

const CLIENT = 'a-client'
const MESSAGE = { id: 'm', clientId: CLIENT, body: encodeText('x'), metadata: '', tags: {} }
const SEND: QueueSend = { ...MESSAGE, delayMs: 0, expirationMs: 0, maxReceiveCount: 1, deadLetterQueue: 'dead' }
const RECEIVE = { maxMessages: 1, waitMs: 10_000, leaseMs: 60_000, clientId: CLIENT }
const REPLY: Reply = { executed: true, error: '', body: encodeText('answer'), metadata: '', tags: {} }

describe.skipIf(NATS_SERVER === undefined)('what docs/guides/security.md says of NATS', () => {
  test('NATS - the permissions of the page are enough for all that nodes do, and nobody else is let in', async () => {
    const nats = await startSecured()
    const problems: NatsEngineProblem[] = []
    const one = await openNode(nats, 'signalbox:right', problems)
    const two = await openNode(nats, 'signalbox:right', problems)

    await one.queues.sendBatch('q', [SEND, { ...SEND, deduplicationId: 'd', expirationMs: 300 }, SEND])
    const [acked] = await two.queues.receive('q', RECEIVE)
    expect(await one.queues.extend([acked?.receipt ?? ''], CLIENT, 120_000)).toMatchObject({ settled: 1 })
    expect(await one.queues.ack([acked?.receipt ?? ''], CLIENT)).toMatchObject({ settled: 1 })
    await vi.waitFor(async () => expect((await one.channels.info('queues', 'q'))?.queue?.expired).toBe(1), PATIENT)
    const [nacked] = await two.queues.receive('q', RECEIVE)
    expect(await two.queues.nack([nacked?.receipt ?? ''], CLIENT)).toMatchObject({ settled: 1 })
    const [dead] = await one.queues.receive('dead', RECEIVE)
    expect(dead?.message.tags).toMatchObject({ dlq_source: 'q' })
    await one.queues.send('dead', { ...SEND, maxReceiveCount: 0 })
    expect(await two.queues.peek('dead', { maxMessages: 5 })).toHaveLength(2)
    expect(await two.queues.purge('dead')).toBe(1)

    const stored: number[] = []
    const group = await two.eventsStore.subscribe('log', { from: 'first' }, { group: 'g' }, ({ sequence }) => {
      stored.push(sequence)
    })
    const alone = await two.eventsStore.subscribe(
      'log',
      { from: 'first' },
      {},
      ({ sequence }) => void stored.push(sequence),
    )
    await one.eventsStore.append('log', { ...MESSAGE, key: 'k', expectLastOfKey: 0 })
    await vi.waitFor(() => expect(stored).toEqual([1, 1]), PATIENT)
    expect(await one.eventsStore.readLatest('log', { maxMessages: 1 })).toHaveLength(1)
    await one.channels.create('events_store', 'log', { maxAgeMs: 60_000 })
    await one.channels.create('events_store', 'compacted', { compacted: true })
    await one.eventsStore.append('compacted', { ...MESSAGE, key: 'k', tombstone: true })
    await one.eventsStore.tombstones.sweep(Date.now() + 3_600_000)
    await Promise.all([group.close(), alone.close()])

    const events: string[] = []
    await two.events.subscribe('news.*', {}, ({ channel }) => void events.push(channel))
    await one.events.publish('news.today', MESSAGE)
    await vi.waitFor(() => expect(events).toEqual(['news.today']), PATIENT)
    await two.requests.serve('queries', 'r', {}, async () => REPLY)
    expect(await one.requests.request('queries', 'r', MESSAGE, { timeoutMs: 10_000 })).toMatchObject({ executed: true })

    await two.housekeeping.look(Date.now())
    expect(await two.channels.delete('queues', 'q')).toBe(true)
    expect(await one.health()).toMatchObject({ ok: true })
    await two.close()
    await one.close()
    // Every refusal is reported, for each user.
    expect(problems.filter(({ message }) => !message.includes('one NATS server only'))).toEqual([])

    for (const stranger of ['signalbox:wrong', 'nobody:right']) {
      await expect(openNode(nats, stranger)).rejects.toMatchObject({ code: 'SERVERS_REFUSED' })
    }
  })
})
