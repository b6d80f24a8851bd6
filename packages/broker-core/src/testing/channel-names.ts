import assert from 'node:assert/strict'

import type { ChannelType } from '../channel.ts'
import { CHANNEL_TYPES } from '../channel.ts'
import type { ContractCase } from './contract-case.ts'
import { contractCase, isolatedCase } from './contract-case.ts'
import { outgoing, queued, receiveOne, reply, storedEvent, text } from './messages.ts'
import { Inbox, PATIENCE_MS } from './waiting.ts'

/**
 * Returns names that the naming rules allow and that careless storage or transport would garble. The beginning of each
 * is unique.
 */
function names(root: string): readonly string[] {
  return [
    `${root} with blanks inside`,
    `${root}🙂`,
    `${root}größe`,
    `${root}.*a`,
    `${root}.a>b`,
    `${root}.a*`,
    `${root}/with/slashes/../up`,
    `${root}\\back`,
    `${root}$SYS.x`,
    `${root}%20%2e`,
    `${root}_a`,
    `${root}-a`,
    `${root}.a`,
    `${root}/a`,
    `${root} a`,
    `${root}:a`,
    `${root}'"\`;--`,
    `${root}?#&=+`,
    `${root}UPPER`,
    `${root}upper`,
    `${root}e\u0301`,
    `${root}é`,
    root.padEnd(255, 'x'),
    root.padEnd(254, 'x'),
  ]
}

/** Cases for channel names: every allowed name works, and no two are mixed up. */
export const channelNameCases: readonly ContractCase[] = [
  contractCase('C1 - channels: queues with any allowed names are separate', async ({ engine, channel }) => {
    const all = names(channel('q'))
    await Promise.all(all.map((name) => engine.queues.send(name, queued(name))))
    for (const name of all) {
      const { message } = await receiveOne(engine, name)
      assert.deepEqual([message.channel, text(message), message.sequence], [name, name, 1])
    }
  }),

  contractCase('C1 - channels: events stores with any allowed names are separate', async ({ engine, channel }) => {
    const all = names(channel('l'))
    await Promise.all(all.map((name) => engine.eventsStore.append(name, storedEvent(name))))
    for (const name of all) {
      const entries = await engine.eventsStore.read(name, { maxMessages: 10 })
      assert.deepEqual(
        entries.map((entry) => [entry.channel, text(entry), entry.sequence]),
        [[name, name, 1]],
      )
    }
  }),

  contractCase('C1 - channels: events on channels with any allowed names are separate', async ({ engine, channel }) => {
    const all = names(channel('t'))
    const inboxes = await Promise.all(
      all.map(async (name) => {
        const inbox = new Inbox<readonly [string, string]>()
        await engine.events.subscribe(name, {}, (event) => inbox.push([event.channel, text(event)]))
        return inbox
      }),
    )
    for (const name of all) await engine.events.publish(name, outgoing(name))
    for (const [i, inbox] of inboxes.entries()) {
      await inbox.take(1)
      assert.deepEqual(inbox.items, [[all[i], all[i]]])
    }
  }),

  contractCase(
    'C1 - channels: requests on channels with any allowed names are separate',
    async ({ engine, channel }) => {
      const all = names(channel('r'))
      for (const name of all) await engine.requests.serve('queries', name, {}, async () => reply(name))
      const answers = await Promise.all(
        all.map((name) => engine.requests.request('queries', name, outgoing('x'), { timeoutMs: PATIENCE_MS })),
      )
      assert.deepEqual(answers.map(text), all)
    },
  ),

  isolatedCase(
    'C1 - channels: any allowed name can be listed, found and deleted, and survives a restart',
    async (context) => {
      const all = names(context.channel('c'))
      for (const name of all) {
        for (const type of CHANNEL_TYPES) await context.engine.channels.create(type, name)
      }
      const listed = async (type: ChannelType) =>
        new Set((await context.engine.channels.list(type)).map(({ name }) => name))
      for (const type of CHANNEL_TYPES) assert.deepEqual(await listed(type), new Set(all))
      await context.restart()
      // Only stored types survive a restart.
      for (const type of ['queues', 'events_store'] as const) {
        assert.deepEqual(await listed(type), new Set(all))
        for (const name of all) {
          assert.equal((await context.engine.channels.info(type, name))?.name, name)
          assert.equal(await context.engine.channels.delete(type, name), true)
          assert.equal(await context.engine.channels.info(type, name), undefined)
        }
      }
    },
  ),
]
