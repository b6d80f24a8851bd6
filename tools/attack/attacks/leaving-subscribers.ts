import type { Attack } from '../attack.ts'
import type { HeldResponse } from '../caller.ts'
import { makeChannels } from '../channels.ts'
import { inParallel } from '../tally.ts'

const CHANNELS = 9_000
const SUBSCRIBERS = 2_000

/** The subscriptions that one attacker opens: fewer than the limit of one caller. */
const BY_ONE = 200

export const leavingSubscribers: Attack = {
  name: 'leaving-subscribers',
  about: '2,000 wildcard subscribers that disconnect at once, with 9,000 channels',
  settings: { MAX_CHANNELS: '20000' },
  async prepare(scene) {
    await makeChannels(scene, scene.scaled(CHANNELS, 600), (index) => `attack.${index % 100}.${index}`)
    const streams: HeldResponse[] = []
    await inParallel(scene.scaled(SUBSCRIBERS, 150), 20, async (index) => {
      const channel = index % 2 === 0 ? `attack.*.${index}` : `attack.${index % 100}.>`
      const stream = await scene
        .attacker(20 + Math.floor(index / BY_ONE))
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
