import { Buffer } from 'node:buffer'

import type { Caller, HeldResponse } from '../attack/callers.ts'
import type { Attack, Scene } from '../attack/scene.ts'
import { during, inParallel } from '../attack/scene.ts'

const CONNECTIONS = 40

/** A control character: six bytes in JSON, and seven in the text of a tool's result. */
const CONTROL = '\u0001'

/** The most bytes of a result of several messages: 256 KiB of text with its escapes, and the structured content. */
const MAX_RESULT_BYTES = 1_000_000

/** Reads messages over and over on many connections, by the calls in turn, and checks the sizes of the answers. */
async function readAll(
  scene: Scene,
  calls: readonly (() => ReturnType<Caller['ask']>)[],
  maxBytes: number,
): Promise<void> {
  let largest = 0
  await during(scene.scaled(10_000, 3_000), scene.scaled(CONNECTIONS, 6), async (_index, worker) => {
    const call = calls[worker % calls.length]
    const answer = call === undefined ? undefined : await scene.tally.of(call())
    if (answer === undefined) return
    largest = Math.max(largest, answer.text.length)
    // A refused caller would otherwise only measure refusals.
    if (answer.text.length < 10_000) await new Promise((resolve) => setTimeout(resolve, 100))
  })
  scene.tally.expect(largest <= maxBytes, `an answer had ${largest} bytes, and ${maxBytes} are allowed`)
  scene.tally.expect(scene.tally.countOf('200') > 0, 'no read succeeded')
}

/** Many messages whose JSON is six times as large. */
export const largeAnswers: Attack = {
  name: 'large-answers',
  about: '40 connections that peek at 60 messages of 100 KB of control characters, by /mcp and /ce',
  async prepare(scene) {
    const caller = scene.attacker()
    const channel = 'attack.control'
    for (let n = 0; n < 60; n++) await caller.tool('queue_send', { channel, body: CONTROL.repeat(100_000) })
    const peek = '/ce/queue/receive?channel=attack.control&is_peek=true&max_messages=1000'
    return () =>
      readAll(
        scene,
        [() => caller.tool('queue_peek', { channel, max_messages: 100 }), () => caller.ask('POST', peek)],
        2 * MAX_RESULT_BYTES,
      )
  },
}

/** One message whose JSON is 60 MB. */
export const hugeAnswer: Attack = {
  name: 'huge-answer',
  about:
    '40 connections that peek at a message of 10 MB of control characters, by /mcp, /ce and the management listener',
  async prepare(scene) {
    const caller = scene.attacker()
    const body = Buffer.alloc(10_000_000, CONTROL)
    const headers = {
      'content-type': 'text/plain',
      'ce-specversion': '1.0',
      'ce-id': 'huge',
      'ce-source': '/attack',
      'ce-type': 'attack',
      'ce-subject': 'attack.huge',
    }
    const sent = await caller.ask('POST', '/ce/queue/send?channel=attack.huge', { headers, body })
    scene.tally.expect(sent.status === 202, `the message was not accepted: ${sent.text.slice(0, 200)}`)
    const input = { channel: 'attack.huge', max_messages: 10 }
    const action = JSON.stringify(input)
    const json = { 'content-type': 'application/json' }
    const url = `${scene.api}/api/actions/peek_queue_messages`
    return () =>
      readAll(
        scene,
        [
          () => caller.tool('queue_peek', input),
          () => caller.ask('POST', '/ce/queue/receive?channel=attack.huge&is_peek=true'),
          () => scene.operator.ask('POST', url, { headers: json, body: action }),
        ],
        75_000_000,
      )
  },
}

const MESSAGES = 60
const BYTES = 9_000_000

/** A read of many large messages must not read more of them than its answer can hold. */
export const largeReads: Attack = {
  name: 'large-reads',
  about: 'queue_peek of a queue with 60 messages of 9 MB, alone and three at a time',
  async prepare(scene) {
    const caller = scene.attacker()
    const body = 'x'.repeat(BYTES)
    await inParallel(MESSAGES, 4, () => caller.tool('queue_send', { channel: 'attack.large', body }))
    return async () => {
      const args = { channel: 'attack.large', max_messages: 100 }
      await scene.tally.of(caller.tool('queue_peek', args))
      await inParallel(scene.scaled(12, 3), 3, () => scene.tally.of(caller.tool('queue_peek', args)))
      scene.tally.expect(scene.tally.countOf('200 ') === 0, 'a peek failed')
    }
  },
}

const READERS = 200
const SLOW_EVENT_BYTES = 2_000_000

/** Readers of large events that read nothing. The kernel's buffer of each connection is not counted. */
export const slowReaders: Attack = {
  name: 'slow-readers',
  about: '200 subscribers of events of 2 MB that read nothing',
  async prepare(scene) {
    const caller = scene.attacker()
    const body = 'x'.repeat(scene.scaled(SLOW_EVENT_BYTES, 500_000))
    for (let n = 0; n < 8; n++) await caller.tool('events_store_publish', { channel: 'attack.stored', body })
    return async () => {
      const most = await scene.processLimit('process_unread_bytes')
      const streams: HeldResponse[] = []
      await inParallel(scene.scaled(READERS, 20), 20, async (index) => {
        const path =
          index % 2 === 0
            ? '/ce/subscribe/events?channel=attack.live'
            : '/ce/subscribe/events-store?channel=attack.stored&events_store_type=2'
        const stream = await scene.tally.ofStream(caller.stream(path))
        if (stream !== undefined) streams.push(stream)
      })
      let peak = 0
      for (let n = 0; n < 10; n++) {
        await scene.tally.of(caller.tool('events_publish', { channel: 'attack.live', body }))
        peak = Math.max(peak, await scene.metric('broker_limit_use', 'limit="process_unread_bytes"'))
      }
      // One event that is larger than the remaining space may be written, with the frame of each.
      const allowed = most / 2 + 2.05 * SLOW_EVENT_BYTES
      scene.tally.expect(peak <= allowed, `${peak} bytes were unread, and ${allowed} are allowed`)
    }
  },
}

const EVENT_BYTES = 8_000_000
const PATH = '/ce/subscribe/events-store?channel=attack.group&group=g&events_store_type=2'

/** Subscribers of a group that receive 8 MB, read nothing and disconnect; the next subscriber gets the event. */
export const groupMember: Attack = {
  name: 'group-member',
  about: 'subscribers of a group that disconnect with 8 MB unread',
  async prepare(scene) {
    const caller = scene.attacker()
    await caller.tool('events_store_publish', { channel: 'attack.group', body: 'x'.repeat(EVENT_BYTES) })
    return async () => {
      for (let n = 0; n < scene.scaled(20, 3); n++) {
        const streams = await Promise.all([caller.stream(PATH), caller.stream(PATH), caller.stream(PATH)])
        await new Promise((resolve) => setTimeout(resolve, 100))
        for (const stream of streams) {
          scene.tally.count(stream.isStream ? 'stream' : String(stream.status))
          stream.close()
        }
      }
      const last = await caller.stream(PATH)
      setTimeout(() => last.close(), scene.scaled(5_000, 2_000))
      const text = await last.rest()
      scene.tally.expect(text.length > EVENT_BYTES, `the subscriber that read got ${text.length} bytes of the event`)
    }
  },
}

const MANY_CHANNELS = 9_000
const SUBSCRIBERS = 2_000

/** The subscriptions that one attacker opens: fewer than the limit of one caller. */
const SUBSCRIPTIONS_BY_ONE = 200

export const leavingSubscribers: Attack = {
  name: 'leaving-subscribers',
  about: '2,000 wildcard subscribers that disconnect at once, with 9,000 channels',
  settings: { MAX_CHANNELS: '20000' },
  async prepare(scene) {
    await makeChannels(scene, scene.scaled(MANY_CHANNELS, 600), (index) => `attack.${index % 100}.${index}`)
    const streams: HeldResponse[] = []
    await inParallel(scene.scaled(SUBSCRIBERS, 150), 20, async (index) => {
      const channel = index % 2 === 0 ? `attack.*.${index}` : `attack.${index % 100}.>`
      const stream = await scene
        .attacker(20 + Math.floor(index / SUBSCRIPTIONS_BY_ONE))
        .stream(`/ce/subscribe/events?channel=${encodeURIComponent(channel)}`)
      if (!stream.isStream) throw new Error(`not a stream: ${stream.status} ${await stream.rest()}`)
      stream.drain()
      streams.push(stream)
    })
    return async () => {
      for (const stream of streams) stream.close()
      scene.tally.count('left', streams.length)
      await scene.until(async () => (await scene.metric('broker_limit_use', 'limit="process_streams"')) === 0)
    }
  },
}

const CHANNELS = 9_000

export const channelList: Attack = {
  name: 'channel-list',
  about: 'channel_list, statistics and the snapshot with 9,000 channels, eight at a time',
  settings: { MAX_CHANNELS: '20000' },
  async prepare(scene) {
    await makeChannels(scene, scene.scaled(CHANNELS, 600), (index) => `attack.${index}`)
    return async () => {
      const caller = scene.attacker()
      const asks = [
        () => caller.tool('channel_list', {}),
        () => caller.tool('channel_list', { pattern: '*9*' }),
        () => caller.tool('channel_list', { pattern: 'attack.5', type: 'events' }),
        () => scene.viewer.ask('GET', `${scene.api}/v1/stats/channels?limit=1000`),
        () => scene.viewer.ask('GET', `${scene.api}/api/snapshot`),
      ]
      await during(scene.floodMs, 8, async (index) => {
        const ask = asks[index % asks.length]
        if (ask !== undefined) await scene.tally.of(ask())
      })
    }
  },
}

/** The longest name is 255 bytes. */
const NAME = `attack${'a'.repeat(240)}`

const PATTERNS = [
  `${'*a'.repeat(120)}b`,
  `attack${'*a'.repeat(500)}*b`,
  `${'?*'.repeat(120)}b`,
  `attack${'a*?'.repeat(80)}z`,
  `${'*'.repeat(10_000)}b`,
  '*aa'.repeat(1_000),
]

export const globs: Attack = {
  name: 'globs',
  about: 'patterns of channel_list and of statistics that backtrack, over 2,000 long names',
  settings: { MAX_CHANNELS: '20000' },
  async prepare(scene) {
    await makeChannels(scene, scene.scaled(2_000, 200), (index) => `${NAME}${index}`)
    return async () => {
      const caller = scene.attacker()
      await during(scene.floodMs, 4, async (index) => {
        const pattern = PATTERNS[index % PATTERNS.length] ?? ''
        await scene.tally.of(caller.tool('channel_list', { pattern }))
        const path = `${scene.api}/v1/stats/channels?channel=${encodeURIComponent(pattern)}`
        await scene.tally.of(scene.viewer.ask('GET', path))
      })
    }
  },
}

/** The channels that one attacker creates if an attack needs many: fewer than the limit of one caller. */
const BY_ONE = 800

/**
 * Creates event channels, with as many attackers as needed.
 * @param nameOf The name of each; they begin with the prefix of the attackers
 */
async function makeChannels(scene: Scene, count: number, nameOf: (index: number) => string): Promise<void> {
  await inParallel(count, 32, async (index) => {
    const caller = scene.attacker(1 + Math.floor(index / BY_ONE))
    const { status, text } = await caller.tool('events_publish', { channel: nameOf(index), body: 'x' })
    if (status !== 200 || text.includes('"isError":true')) {
      throw new Error(`a channel was not created: ${status} ${text.slice(0, 300)}`)
    }
  })
}
