import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import type { NatsConnection } from '@nats-io/transport-node'
import { connect, createInbox } from '@nats-io/transport-node'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { CLIENT, outgoing, queued, RECEIVE, text } from './support/messages.ts'
import { openNode, startServer } from './support/nodes.ts'

const PATIENT = { timeout: 20_000 }
const REQUESTS = '$JS.API.CONSUMER.MSG.NEXT'
const ONE = JSON.stringify({ batch: 1, expires: 20_000_000_000 })

/** A node, and somebody on its server who hears the node ask for messages, and can ask in its name. */
async function nodeAndEavesdropper() {
  const server = await startServer()
  const node = await openNode(server)
  const outsider: NatsConnection = await connect({ servers: server.url })
  onTestFinished(() => outsider.close())
  /** Where the node wants answers, by the subject that it asks. */
  const inboxes = new Map<string, string>()
  outsider.subscribe(`${REQUESTS}.>`, {
    callback: (error, { subject, reply }) => {
      if (!error && reply !== undefined) inboxes.set(subject, reply)
    },
  })
  await outsider.flush()
  const asked = (wanted: (subject: string) => boolean): Promise<string> =>
    vi.waitFor(() => {
      const subject = [...inboxes.keys()].find(wanted)
      if (subject === undefined) throw new Error('nobody asks yet')
      return subject
    }, PATIENT)
  /** Subscribes to an events store; resolves with what comes, and what the node asks the servers for it. */
  const follow = async (eventsStore: string) => {
    const before = new Set(inboxes.keys())
    const seen: string[] = []
    await node.eventsStore.append(eventsStore, outgoing('0'))
    await node.eventsStore.subscribe(eventsStore, { from: 'new' }, {}, (event) => void seen.push(text(event)))
    const subject = await asked((one) => !before.has(one) && one.includes('.f-'))
    return { seen, subject }
  }
  /** Has the next message but one of a consumer delivered to an inbox: the node's own request is before this one. */
  const ask = async (subject: string, inbox: string | undefined): Promise<void> => {
    outsider.publish(subject, ONE, { reply: inbox ?? '' })
    await outsider.flush()
  }
  /** The same, and nobody else gets it. */
  const take = async (subject: string): Promise<readonly string[]> => {
    const inbox = createInbox()
    const taken: string[] = []
    outsider.subscribe(inbox, {
      callback: (_error, { reply = '' }) => {
        if (reply.startsWith('$JS.ACK.')) taken.push(reply)
      },
    })
    await ask(subject, inbox)
    return taken
  }
  return { node, inboxes, asked, follow, ask, take }
}

describe.skipIf(NATS_SERVER === undefined)('answers that are late or lost', () => {
  test('CL-6 - an entry that arrives with the answer to another request reaches only its subscriber', async () => {
    const { node, inboxes, follow, ask } = await nodeAndEavesdropper()
    for (let i = 0; i < 5; i++) await node.eventsStore.append('long', outgoing('old'))
    const short = await follow('short')
    const long = await follow('long')
    await ask(long.subject, inboxes.get(short.subject))
    for (const body of ['1', '2', '3']) {
      await node.eventsStore.append('long', outgoing(body))
      await vi.waitFor(() => expect(long.seen).toContain(body), PATIENT)
    }
    for (const body of ['a', 'b']) await node.eventsStore.append('short', outgoing(body))
    await vi.waitFor(() => expect(short.seen).toEqual(['a', 'b']), PATIENT)
    expect(long.seen).toEqual(['1', '2', '3'])
  })

  test('CL-6 - an entry that did not arrive is requested again, in order', async () => {
    const { node, follow, take } = await nodeAndEavesdropper()
    const { seen, subject } = await follow('log')
    const taken = await take(subject)
    await node.eventsStore.append('log', outgoing('1'))
    await vi.waitFor(() => expect(seen).toEqual(['1']), PATIENT)
    await node.eventsStore.append('log', outgoing('2'))
    await vi.waitFor(() => expect(taken).toHaveLength(1), PATIENT)
    for (const body of ['3', '4']) await node.eventsStore.append('log', outgoing(body))
    await vi.waitFor(() => expect(seen).toEqual(['1', '2', '3', '4']), PATIENT)
  })

  test('CL-6 - a queue’s message in the answer to a subscriber’s request is rejected', async () => {
    const { node, inboxes, asked, follow, ask } = await nodeAndEavesdropper()
    const eventsStore = await follow('log')
    await node.queues.send('q', queued('zeroth'))
    await node.queues.receive('q', RECEIVE)
    const receiving = node.queues.receive('q', RECEIVE)
    const subject = await asked((one) => one.endsWith('.receivers'))
    await ask(subject, inboxes.get(eventsStore.subject))
    await node.queues.send('q', queued('first'))
    expect((await receiving).map(({ message }) => text(message))).toEqual(['first'])
    await node.queues.send('q', queued('second'))
    const [again] = await node.queues.receive('q', RECEIVE)
    expect(again && text(again.message)).toBe('second')
    expect(await node.queues.ack([again?.receipt ?? ''], CLIENT)).toEqual({ settled: 1, lost: [] })
    await node.eventsStore.append('log', outgoing('a'))
    await vi.waitFor(() => expect(eventsStore.seen).toEqual(['a']), PATIENT)
  })
})
