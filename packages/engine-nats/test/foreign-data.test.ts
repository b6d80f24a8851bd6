import { ANONYMOUS, createBroker } from '@signalbox/broker-core'
import type { NatsEngineProblem } from '@signalbox/engine-nats'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import type { KV } from '@nats-io/kv'
import { Kvm } from '@nats-io/kv'
import type { NatsConnection } from '@nats-io/transport-node'
import { connect } from '@nats-io/transport-node'
import { createHash } from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { outgoing, queued, RECEIVE, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const PATIENT = { timeout: 20_000 }

/** Somebody else who may write into the servers. */
async function stranger(url: string): Promise<NatsConnection> {
  const connection = await connect({ servers: url })
  onTestFinished(() => connection.close())
  return connection
}

function bucketOf(connection: NatsConnection): Promise<KV> {
  return new Kvm(connection).open('signalbox-channels')
}

function keyOf(type: string, name: string): string {
  return `${type}.${Buffer.from(name).toString('base64url')}`
}

function entry(name: string, more: Record<string, unknown> = {}): string {
  const options = { compacted: false, maxAgeMs: -1, maxBytes: -1 }
  return JSON.stringify({ type: 'queues', name, incarnation: 'AAAAAAAAAAAAAAAA', options, ...more })
}

describe.skipIf(NATS_SERVER === undefined)('what others wrote into the servers', () => {
  test('CL-19 - channels: unreadable entries are skipped and reported once, and the others work', async () => {
    const server = await startServer()
    const problems: NatsEngineProblem[] = []
    const node = await openNode(server, { onProblem: (problem) => problems.push(problem) })
    await node.queues.send('good', queued('x'))
    const bucket = await bucketOf(await stranger(server.url))
    const bad: [string, string][] = [
      [keyOf('queues', 'not json'), '{'],
      [keyOf('queues', 'a subject'), entry('a subject', { incarnation: 'a b.*.>' })],
      [keyOf('queues', 'nameless'), entry('')],
      [keyOf('queues', 'x\ny'), entry('x\ny')],
      [keyOf('queues', 'other'), entry('under another key')],
      [keyOf('queues', 'options'), entry('options', { options: { maxBytes: 'all' } })],
    ]
    for (const [key, value] of bad) await bucket.put(key, value)
    const told = () => problems.filter(({ message }) => message.includes('cannot be read'))
    await vi.waitFor(() => expect(told()).toHaveLength(bad.length), PATIENT)
    const later = await openNode(server)
    for (const each of [node, later]) {
      expect((await each.channels.list()).map(({ name }) => name)).toEqual(['good'])
      expect(await each.stats()).toMatchObject({ channels: 1, queues: { waiting: 1 } })
    }
    // Read again, as after a lost connection: nothing is reported twice.
    await server.kill()
    await server.start()
    await vi.waitFor(async () => expect((await node.health()).ok).toBe(true), PATIENT)
    await node.queues.send('good', queued('y'))
    expect(told()).toHaveLength(bad.length)
  })

  test('CL-19 - channels: a queue whose entry was overwritten keeps its messages', async () => {
    const server = await startServer()
    const before = await openNode(server)
    await before.queues.send('q', queued('kept'))
    await before.close()
    const connection = await stranger(server.url)
    const bucket = await bucketOf(connection)
    const good = await bucket.get(keyOf('queues', 'q'))
    await bucket.put(keyOf('queues', 'q'), 'garbage')
    const node = await openNode(server)
    await expect(node.queues.send('q', queued('new'))).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
    await node.housekeeping.look(Date.now())
    await node.housekeeping.look(Date.now() + 120_000)
    await bucket.put(keyOf('queues', 'q'), good?.value ?? '')
    const [delivery] = await node.queues.receive('q', RECEIVE)
    expect(delivery && text(delivery.message)).toBe('kept')
  })

  test('CL-19 - channels: a channel that the servers do not answer for fails no list or statistics, and is reported once', async () => {
    const stream = `signalbox-q-${createHash('sha256').update('bad').digest('base64url').slice(0, 22)}-AAAAAAAAAAAAAAAA`
    const denied = `permissions: { publish: { deny: ["$JS.API.STREAM.INFO.${stream}"] } }`
    const server = await startServer({
      config: `authorization { users: [{ user: node, password: a, ${denied} }, { user: admin, password: b }] }`,
    })
    const as = (user: string) => server.url.replace('//', `//${user}@`)
    const problems: NatsEngineProblem[] = []
    const node = await openNode(server, {
      servers: [as('node:a')],
      requestTimeoutMs: 1_500,
      onProblem: (problem) => problems.push(problem),
    })
    await node.queues.send('good', queued('x'))
    const connection = await connect({ servers: server.url, user: 'admin', pass: 'b' })
    onTestFinished(() => connection.close())
    const { streams } = await jetstreamManager(connection)
    await streams.add({ name: stream, subjects: ['signalbox.s.AAAAAAAAAAAAAAAA.>'] })
    await (await bucketOf(connection)).put(keyOf('queues', 'bad'), entry('bad'))
    const told = () => problems.filter(({ message }) => message.includes('"bad"'))
    await vi.waitFor(() => expect(node.channels.list('queues')).resolves.toHaveLength(2), PATIENT)
    const [bad, good] = await node.channels.list()
    expect([bad?.name, bad?.queue, good?.name, good?.queue?.waiting]).toEqual(['bad', undefined, 'good', 1])
    const listed = await createBroker(node).broker.as(ANONYMOUS).channels.list()
    expect(listed.map(({ name }) => name)).toEqual(['bad', 'good'])
    expect(await node.stats()).toMatchObject({ queues: { waiting: 1 } })
    expect(told()).toHaveLength(1)
    expect(problems.filter(({ message }) => message.startsWith('NATS: Permissions Violation'))).toHaveLength(1)
    await expect(node.channels.info('queues', 'bad')).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
  })

  test('CL-19, C4 - channels that others announce are validated, and cannot fill every node', async () => {
    const server = await startServer()
    const problems: NatsEngineProblem[] = []
    const node = await openNode(server, { maxChannels: 5, onProblem: (problem) => problems.push(problem) })
    const connection = await stranger(server.url)
    const announce = (names: readonly unknown[]) =>
      connection.publish(
        'signalbox.nodes.live',
        JSON.stringify({
          node: 'BBBBBBBBBBBBBBBB',
          channels: names.map((name) => ({ type: 'events', name, exists: true })),
        }),
      )
    announce(['', 'a\nb', 'x'.repeat(300), '*', 7, null, 'news.>', 'fine'])
    for (const garbage of ['{', 'null', '[]', '{"node":7}', '{"node":"BBBBBBBBBBBBBBBB","channels":7}']) {
      connection.publish('signalbox.nodes.live', garbage)
    }
    const figures = [['queues q', { incoming: 'many', leased: -5, incomingBytes: 1e300 }], 7, [7, {}]]
    connection.publish('signalbox.nodes.figures', JSON.stringify({ node: 'BBBBBBBBBBBBBBBB', figures }))
    await vi.waitFor(
      async () => expect((await node.channels.list()).map(({ name }) => name)).toEqual(['fine']),
      PATIENT,
    )
    expect((await node.stats()).channels).toBe(1)
    await node.events.publish('own', outgoing('x'))
    announce(Array.from({ length: 5_000 }, (_, i) => `n${i}`))
    announce(['last'])
    await vi.waitFor(() => expect(problems.map(({ message }) => message).join()).toContain('announce'), PATIENT)
    await connection.flush()
    expect((await node.stats()).channels).toBeLessThan(200)
    expect(problems.filter(({ message }) => message.includes('announce')).length).toBeLessThanOrEqual(2)
  })

  test("CL-19 - nodes: garbage on the nodes' subjects costs no node its connection", async () => {
    const server = await startServer()
    const problems: NatsEngineProblem[] = []
    const said = vi.spyOn(console, 'log')
    onTestFinished(() => said.mockRestore())
    const node = await openNode(server, { onProblem: (problem) => problems.push(problem) })
    await node.queues.send('q', queued('x'))
    const connection = await stranger(server.url)
    const nodeId = await new Promise<string>((resolve) => {
      connection.subscribe('signalbox.nodes.figures', {
        max: 1,
        callback: (_error, message) => resolve(message.json<{ node: string }>().node),
      })
    })
    const garbage = [
      '',
      '{',
      'null',
      '[]',
      '{"receipt":7}',
      '{"node":7,"sequences":"all"}',
      '{"node":"x","sequences":["a"]}',
    ]
    connection.subscribe('signalbox.nodes.leased', {
      callback: (_error, message) => {
        for (const each of garbage) message.respond(each)
      },
    })
    for (const each of garbage) {
      for (const what of ['settle', 'cancel']) {
        connection.publish(`signalbox.node.${nodeId}.${what}`, each, { reply: 'nowhere' })
        connection.publish(`signalbox.node.${nodeId}.${what}`, each)
      }
      for (const what of ['leased', 'there', 'hello', 'bye', 'figures', 'unknown']) {
        connection.publish(`signalbox.nodes.${what}`, each, { reply: 'nowhere' })
      }
      connection.publish('signalbox.e.u.news', each)
      connection.publish('signalbox.s.AAAAAAAAAAAAAAAA.0.0', each)
    }
    await connection.flush()
    expect(await node.queues.purge('q')).toBe(1)
    await node.queues.send('q', queued('y'))
    expect(await node.queues.receive('q', { ...RECEIVE, waitMs: 1_000 })).toHaveLength(1)
    expect(said).not.toHaveBeenCalled()
    expect(problems.filter(({ kind }) => kind === 'disconnected')).toEqual([])
  })

  test('CL-4 - a node refuses to start with a damaged key of receipts', async () => {
    const server = await startServer()
    await (await openNode(server)).close()
    const connection = await stranger(server.url)
    await jetstream(connection).publish('signalbox.n.key', '')
    await expect(openNode(server, { waitForServers: false })).rejects.toThrow(/key of receipts/)
  })
})
